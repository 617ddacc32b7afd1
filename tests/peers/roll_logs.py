"""What the wire and the plugin say about the same attempts, so that they can be compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.peers.roll_wire import Get

__all__ = ["Attempt", "arrivals", "attempts_in", "lines", "re_openings", "streams_open", "table", "verdicts_in"]

Attempt = tuple[str, str, int]
"""The session that was answered under, or else asked for; the token; the status."""


def lines(file: Path) -> list[dict[str, Any]]:
    """What a process has written so far. Its last line may be half a line."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]


def attempts_in(records: Iterable[dict[str, Any]]) -> Counter[Attempt]:
    """What the plugin counted. Giving up is no request."""
    return Counter(
        (each.get("mcp.session.id", ""), each.get("mcp.resume.token", ""), each.get("http.response.status_code", 0))
        for each in records
        if each["event"] == "mcp_resume.attempt" and each["mcp.resume.outcome"] != "abandoned"
    )


def verdicts_in(records: Iterable[dict[str, Any]]) -> Counter[str]:
    return Counter(
        f"{each['mcp.resume.outcome']}, {each['mcp.resume.reason']}"
        if each["event"] == "mcp_resume.attempt"
        else f"violation: {each['mcp.resume.rule']}"
        for each in records
    )


def re_openings(gets: Iterable[Get]) -> Counter[Attempt]:
    """The GETs that re-open a stream, by the log in front of the balancer."""
    found, opened = Counter[Attempt](), set[str]()
    for get in gets:
        if get.token or get.session in opened:
            found[get.answered or get.session, get.token, get.status] += 1
        if 200 <= get.status < 300:
            opened.add(get.session)
    return found


def arrivals(notes: Iterable[dict[str, Any]]) -> Counter[Attempt]:
    """The same for what reached one instance, which knows nothing of what came before it was there.

    One that takes in an unknown session opens a stream of another one, of which there was none before.
    """
    found, opened = Counter[Attempt](), set[str]()
    for each in notes:
        if each["what"] != "answered" or each["method"] != "GET":
            continue
        is_open = 200 <= each["status"] < 300
        if each["token"] or (is_open and each["session"] in opened):
            found[each["answered"] or each["session"], each["token"], each["status"]] += 1
        if is_open:
            opened.add(each["answered"] or each["session"])
    return found


def streams_open(notes: Iterable[dict[str, Any]], method: str) -> set[str]:
    """The sessions of which an instance holds a stream of that kind."""
    found: dict[int, str] = {}
    for each in notes:
        if each["what"] == "over":
            found.pop(each["number"], None)
        elif each["what"] == "answered" and each["method"] == method and each["stream"]:
            found[each["number"]] = each["session"]
    return set(found.values())


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)

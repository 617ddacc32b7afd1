"""Spans as they were received, in a form that is the same for every run: whose, of what, linked to what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.traces.receiver import Sent

Told = dict[str, Any]

SESSIONS = ("mcp.session.id", "mcp.resume.previous_session_id")
IDS = ("mcp.resume.token", "mcp.resume.first_event_id", "mcp.resume.last_event_id", "mcp.resume.event_id")
MEASURED = ("mcp.resume.downtime", "mcp.resume.events", "mcp.resume.missed_events", "server.port")
KINDS = {1: "INTERNAL", 2: "SERVER", 3: "CLIENT"}


def tell(spans: Iterable[Sent]) -> list[Told]:
    """Every span that is there, once, however often it is there."""
    known = {span.where: span for span in spans}
    whose = {
        span.attributes["mcp.session.id"]: f"session of {span.service}"
        for span in sorted(known.values(), key=lambda span: span.start)
        if span.name == "mcp.session" and span.attributes.get("mcp.resume.side") == "server"
    }
    told: list[Told] = []
    for span in sorted(known.values(), key=lambda span: span.start):
        story = _story(span, known, whose)
        if story not in told:
            told.append(story)
    return sorted(told, key=str)


def merge(known: Sequence[Told], told: Sequence[Told]) -> list[Told]:
    """What is known now: what was not there every time, `sometimes` comes."""
    if not known:
        return list(told)
    always = [each for each in known if "sometimes" not in each and each in told]
    others = [_plain(each) for each in known if each not in always]
    others += [each for each in told if each not in always and each not in others]
    return sorted([*always, *({**each, "sometimes": True} for each in others)], key=str)


def _plain(each: Told) -> Told:
    return {key: value for key, value in each.items() if key != "sometimes"}


def differences(known: Sequence[Told], told: Sequence[Told]) -> tuple[list[Told], list[Told]]:
    """What was never seen before, and what is missing."""
    possible = [_plain(each) for each in known]
    new = [each for each in told if each not in possible]
    return new, [each for each in known if "sometimes" not in each and each not in told]


def _story(span: Sent, known: Mapping[tuple[str, str], Sent], whose: Mapping[str, str]) -> Told:
    parent = known.get((span.trace_id, span.parent_id))
    events = [{"name": name, "attributes": _shown(attributes, whose)} for name, attributes in span.events]
    return {
        "name": span.name,
        "service": span.service,
        "scope": span.scope,
        "kind": KINDS[span.kind],
        "status": f"{span.status} {span.message}".strip(),
        "parent": "" if not span.parent_id else "unknown" if parent is None else _title(parent),
        "links": sorted(_title(known[where]) if where in known else "unknown" for where in set(span.links)),
        "events": [event for at, event in enumerate(events) if event not in events[:at]],
        "attributes": _shown(span.attributes, whose, () if span.name == "mcp.resume" else ("mcp.resume.events",)),
    }


def _title(span: Sent) -> str:
    about = ("mcp.resume.stream", "mcp.method.name", "mcp.resume.outcome")
    return " ".join([span.service, span.name, *(str(span.attributes[key]) for key in about if key in span.attributes)])


def _shown(attributes: Mapping[str, Any], whose: Mapping[str, str], uncertain: Iterable[str] = ()) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name, value in sorted(attributes.items()):
        if name in SESSIONS:
            shown[name] = whose.get(value, "unknown session")
        elif name in IDS or name in uncertain or (name in MEASURED and value):
            shown[name] = f"<{type(value).__name__}>"
        else:
            shown[name] = value
    return shown

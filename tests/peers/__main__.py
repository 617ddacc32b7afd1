"""`python -m tests.peers [CLIENT>SERVER ...]` plays every scene, and prints what happened as tables in Markdown."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from tests.peers.nodejs import install
from tests.peers.pairs import Meeting, meetings
from tests.peers.scenes import SCENES
from tests.peers.stage import OURS, Report

HEAD = "| scene | on the wire | reached the application | client side | server side |\n|---|---|---|---|---|"


def main(pairs: Sequence[str]) -> int:
    """Plays these pairs, or all if none is named. 1 if anything was said that is not expected."""
    logging.disable(logging.CRITICAL)
    wrong = 0
    with tempfile.TemporaryDirectory() as home:
        install(Path(home))
        for (client, server), scenes in groupby(meetings(), lambda each: (each.client, each.server)):
            if pairs and f"{client}>{server}" not in pairs:
                continue
            print(f"\n### Client: {_name(client)}. Server: {_name(server)}\n\n{HEAD}")
            for meeting in scenes:
                report = meeting.play(Path(home))
                wrong += _is_wrong(meeting, report)
                print(_row(meeting, report), flush=True)
    print(f"\n{wrong} of them unexpected." if wrong else "\nAll as expected.")
    return int(bool(wrong))


def _name(kind: str) -> str:
    if kind == "fastmcp":
        return f"FastMCP {version('fastmcp')}"
    peer, _, revision = kind.partition("-")
    python = f"the Python SDK {version('mcp')}"
    names = {"python": python, "sdk1": "the TypeScript SDK 1.x", "sdk2": "the TypeScript SDK 2.x"}
    return f"{names[peer]}, without sessions" if revision else names[peer]


def _is_wrong(meeting: Meeting, report: Report) -> bool:
    said = (report.client_said, report.server_said)
    return said != (meeting.expected("client"), meeting.expected("server")) or bool(report.faults)


def _row(meeting: Meeting, report: Report) -> str:
    results = [each for each in report.results if each.split(":")[0] in ("wait", "poll", "count")]
    arrived = ", ".join([*report.heard, *results])
    sides = [
        _said(meeting.client, report.client_said, [word for word in report.words if word.startswith("client")]),
        _said(meeting.server, report.server_said, [word for word in report.words if word.startswith("server")]),
    ]
    mark = " **unexpected**" if _is_wrong(meeting, report) else ""
    cells = [SCENES[meeting.scene].title + mark, "<br>".join(report.telling_wire), arrived, *sides]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _said(whose: str, said: Counter[str], words: list[str]) -> str:
    """A peer that nobody watches has only its own words."""
    if whose not in OURS:
        own = "; ".join(dict.fromkeys(word.partition(": ")[2] for word in words))
        return f"(not watched) {own}".strip()
    return "<br>".join(f"{what}{f' ({count})' if count > 1 else ''}" for what, count in said.items()) or "nothing"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

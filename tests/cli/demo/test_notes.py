from __future__ import annotations

import logging

from otel_mcp_resume.cli.demo.notes import Notes


def test_only_what_would_be_seen_is_noted_and_never_the_plugin() -> None:
    notes = Notes(lambda *_, **__: None)
    with notes.listening():
        logging.getLogger("mcp.client").debug("GET stream error")
        logging.getLogger("mcp.client").warning("unknown event %s", "x")
        logging.getLogger("otel_mcp_resume").error("gap")
        logging.getLogger("otel_mcp_resume.report.log").error("gap")
    logging.getLogger("mcp.client").error("too late")
    notes.raised(ValueError("no"))
    assert notes.alarms == ["WARNING mcp.client: unknown event x", "ValueError: no"]


def test_a_message_that_comes_twice_counts_once() -> None:
    said: list[tuple[str, object]] = []
    notes = Notes(lambda event, **details: said.append((event, details)))
    for text in ("row 1", "row 2", "row 2", "news 1"):
        notes.arrived(text)
    assert notes.count("row") == 2
    notes.conclude("done", missing=3)
    assert said[0] == ("arrived", {"text": "row 1"})
    assert said[-1] == ("concluded", {"saw": "done", "alarms": [], "figures": {"missing": 3}})

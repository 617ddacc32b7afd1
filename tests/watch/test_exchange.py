from __future__ import annotations

import pytest

from otel_mcp_resume.rules.terms import Generation, Stream
from otel_mcp_resume.watch.exchange import RequestHead, ResponseHead, context_of, generation_of
from otel_mcp_resume.watch.facts import Context
from tests.watch.client_play import LATER, Play


@pytest.mark.parametrize(
    ("version", "generation"),
    [
        (None, Generation.STREAMABLE_HTTP),
        ("2025-03-26", Generation.STREAMABLE_HTTP),
        ("2025-06-18", Generation.STREAMABLE_HTTP),
        ("2025-11-25", Generation.STREAMABLE_HTTP),
        ("2026-07-27", Generation.STREAMABLE_HTTP),
        ("2026-07-28", Generation.STATELESS),
        ("2027-01-01", Generation.STATELESS),
        ("", Generation.STREAMABLE_HTTP),
    ],
)
def test_the_revision_tells_the_generation(version: str | None, generation: Generation) -> None:
    assert generation_of(version) is generation
    assert RequestHead("GET", protocol_version=version).generation is generation


def test_what_is_shown_of_an_exchange() -> None:
    play = Play()
    line = play.line(Stream.REQUEST, method="tools/call", request_id="7")
    shown = context_of(line.stream, RequestHead("GET", "S1", "5", "2025-06-18"), ResponseHead(200, "S2"))
    assert shown == Context("S2", "2025-06-18", "tools/call", "7", 200, "mcp.example", 8443)
    assert context_of(line.stream, RequestHead("GET", "S1"), ResponseHead(200)).session_id == "S1"
    assert context_of(line.stream, None, None) == Context(None, None, "tools/call", "7", None, "mcp.example", 8443)


def test_a_stateless_exchange_has_no_session() -> None:
    play = Play()
    line = play.line(Stream.REQUEST).open(method="POST", protocol=LATER)
    assert context_of(line.stream, RequestHead("POST", "S1", None, LATER), ResponseHead(200, "S2")).session_id is None

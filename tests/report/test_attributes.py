from __future__ import annotations

from otel_mcp_resume.report import fields
from otel_mcp_resume.report.attributes import of_attempt, of_violation
from otel_mcp_resume.report.ids import Ids
from otel_mcp_resume.rules.terms import Generation, Outcome, Reason, Side, Stream, ViolationRule
from otel_mcp_resume.settings import Settings
from otel_mcp_resume.watch.facts import AttemptSettled, Context, Violated

HTTP = Generation.STREAMABLE_HTTP
ATTEMPT = AttemptSettled(
    Side.SERVER,
    HTTP,
    Generation.SSE,
    Stream.STANDALONE,
    Outcome.GAP,
    Reason.UNDELIVERED,
    elapsed=0.25,
    downtime=1.5,
    token="4821",
    previous_session_id="S1",
    first_event_id="1",
    last_event_id="3",
    events=2,
    missed_events=7,
    context=Context("S2", "2025-06-18", "tools/call", "12", 200, "localhost", 8000),
)
IDENTIFIERS = {
    "mcp.session.id": "S2",
    "mcp.resume.previous_session_id": "S1",
    "mcp.resume.token": "4821",
    "mcp.resume.first_event_id": "1",
    "mcp.resume.last_event_id": "3",
}
RAW, HASH, NONE = (Ids(Settings(ids=mode, ids_key=b"k")) for mode in ("raw", "hash", "none"))


def test_an_attempt_has_every_attribute_with_its_type() -> None:
    assert of_attempt(ATTEMPT, RAW) == {
        "mcp.resume.side": "server",
        "mcp.resume.generation": "streamable_http",
        "mcp.resume.previous_generation": "sse",
        "mcp.resume.stream": "standalone",
        "mcp.resume.outcome": "gap",
        "mcp.resume.reason": "undelivered",
        "mcp.resume.events": 2,
        "mcp.resume.missed_events": 7,
        "mcp.resume.downtime": 1.5,
        "mcp.protocol.version": "2025-06-18",
        "mcp.method.name": "tools/call",
        "jsonrpc.request.id": "12",
        "http.response.status_code": 200,
        "server.address": "localhost",
        "server.port": 8000,
        "network.transport": "tcp",
        **IDENTIFIERS,
    }
    assert all(type(value) in (str, int, float) for value in of_attempt(ATTEMPT, RAW).values())


def test_identifiers_are_hashed_or_left_out_and_nothing_else_is() -> None:
    raw, hashed, none = (of_attempt(ATTEMPT, ids) for ids in (RAW, HASH, NONE))
    assert {name for name in raw if hashed[name] != raw[name]} == set(IDENTIFIERS)
    assert raw.keys() - none.keys() == set(IDENTIFIERS)
    assert set(IDENTIFIERS) <= set(fields.IDENTIFIERS)


def test_what_is_unknown_is_left_out() -> None:
    bare = AttemptSettled(Side.CLIENT, HTTP, HTTP, Stream.REQUEST, Outcome.PROVEN, Reason.PRIMING_EVENT, None)
    assert set(of_attempt(bare, RAW)) == {
        "mcp.resume.side",
        "mcp.resume.generation",
        "mcp.resume.previous_generation",
        "mcp.resume.stream",
        "mcp.resume.outcome",
        "mcp.resume.reason",
        "mcp.resume.events",
        "network.transport",
    }


def test_a_stateless_exchange_has_no_session() -> None:
    context = Context(session_id="S2")
    shown = of_violation(
        Violated(Side.SERVER, Generation.STATELESS, ViolationRule.DUPLICATE_CALL, context=context), RAW
    )
    assert "mcp.session.id" not in shown


def test_a_violation_names_its_rule() -> None:
    fact = Violated(Side.CLIENT, HTTP, ViolationRule.STALE_SESSION, Stream.REQUEST, "4821", Context("S2"))
    assert of_violation(fact, RAW) == {
        "mcp.resume.rule": "stale_session",
        "mcp.resume.side": "client",
        "mcp.resume.generation": "streamable_http",
        "mcp.resume.stream": "request",
        "mcp.session.id": "S2",
        "network.transport": "tcp",
        "mcp.resume.token": "4821",
    }


def test_names_are_those_of_the_table() -> None:
    violation = of_violation(Violated(Side.CLIENT, HTTP, ViolationRule.STALE_SESSION), RAW)
    assert {*of_attempt(ATTEMPT, RAW), *violation} <= set(fields.ATTRIBUTES)


def test_what_a_peer_says_is_bounded_and_printable() -> None:
    evil = "\x1b[2J" + "x" * 100_000
    context = Context(evil, evil, evil, evil, 200, evil, 1)
    fact = Violated(Side.CLIENT, HTTP, ViolationRule.STALE_SESSION, None, evil, context)
    for value in of_violation(fact, RAW).values():
        assert len(str(value)) < 300
        assert str(value).isprintable()

"""What the head of the answer alone decides, or leaves open."""

from __future__ import annotations

import pytest

from otel_mcp_resume.rules.terms import Generation, Outcome, Reason, Stream, ViolationRule
from otel_mcp_resume.watch.facts import AttemptSettled
from otel_mcp_resume.watch.server import Request
from tests.watch.server_world import GET_STREAM, Wire, World

EVICTED = (Outcome.UNPROVEN, Reason.LEDGER_EVICTED)


@pytest.fixture
def world() -> World:
    return World()


class TestHead:
    @pytest.mark.parametrize(
        ("status", "reason"),
        [
            (400, Reason.BAD_REQUEST),
            (401, Reason.UNAUTHORIZED),
            (403, Reason.UNAUTHORIZED),
            (404, Reason.SESSION_NOT_FOUND),
            (405, Reason.NOT_SUPPORTED),
            (406, Reason.OTHER_4XX),
            (409, Reason.STREAM_CONFLICT),
        ],
    )
    def test_refused(self, world: World, status: int, reason: Reason) -> None:
        exchange = world.watch.exchange(Request("GET", session_id="gone", token="3"))
        Wire(world, exchange).head(status, None, event_stream=False).end(finished=True)
        assert world.verdicts == [(Outcome.REJECTED, reason)]

    def test_an_error(self, world: World) -> None:
        exchange = world.watch.exchange(Request("GET", session_id="A", token="3"))
        Wire(world, exchange).head(500, None, event_stream=False).end(finished=True)
        assert world.verdicts == [(Outcome.FAILED, Reason.SERVER_ERROR)]

    def test_no_response_at_all(self, world: World) -> None:
        Wire(world, world.watch.exchange(Request("GET", session_id="A", token="3"))).end()
        assert world.verdicts == [(Outcome.FAILED, Reason.SERVER_ERROR)]

    def test_another_session(self, world: World) -> None:
        session = world.session("B")
        exchange = world.watch.exchange(Request("GET", session_id="A", token="3"))
        session.serve(exchange)
        Wire(world, exchange).head(200, "B")
        assert world.verdicts == [(Outcome.GAP, Reason.SESSION_CHANGED)]

    def test_an_orphan(self, world: World) -> None:
        session = world.session(None)
        world.get(session, world.emit(session), header=None)
        assert world.verdicts == [(Outcome.GAP, Reason.ORPHAN_TOKEN_ACCEPTED)]
        assert world.violations == [ViolationRule.ORPHAN_TOKEN_ACCEPTED]

    def test_no_store(self, world: World) -> None:
        world.get(world.session(stored=False), "3")
        assert world.verdicts == [(Outcome.UNPROVEN, Reason.NO_EVENT_STORE)]

    def test_a_session_that_began_elsewhere(self, world: World) -> None:
        session = world.watch.session("A", standalone=GET_STREAM, is_stored=True)
        world.get(session, "3")
        assert world.verdicts == [EVICTED]

    def test_a_token_on_a_post_is_no_attempt(self, world: World) -> None:
        exchange = world.watch.exchange(Request("POST", session_id="A", token="3"))
        Wire(world, exchange).head(200, "A").end(finished=True)
        assert world.verdicts == []

    @pytest.mark.parametrize(
        ("method", "status", "verdict"),
        [
            ("POST", 200, (Outcome.UNPROVEN, Reason.NOT_RESUMABLE)),
            ("GET", 405, (Outcome.REJECTED, Reason.NOT_SUPPORTED)),
            ("POST", 500, (Outcome.FAILED, Reason.SERVER_ERROR)),
        ],
    )
    def test_stateless(self, world: World, method: str, status: int, verdict: tuple[Outcome, Reason]) -> None:
        exchange = world.watch.exchange(Request(method, token="3"), Generation.STATELESS)
        Wire(world, exchange).head(status, None, event_stream=False).end(finished=True)
        assert world.verdicts == [verdict]

    def test_sse_begins_a_session_with_every_connection(self, world: World) -> None:
        session = world.watch.session("", standalone="session", generation=Generation.SSE)
        exchange = world.watch.exchange(Request("GET", token="5"), Generation.SSE)
        session.serve(exchange)
        Wire(world, exchange).head(200, None)
        assert world.verdicts == [(Outcome.GAP, Reason.SESSION_CHANGED)]
        assert world.of(AttemptSettled)[0].stream is Stream.SESSION

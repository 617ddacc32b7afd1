"""A re-opening without a token: what the stream still owed decides."""

from __future__ import annotations

import pytest

from otel_mcp_resume.rules.terms import Outcome, Reason, UndeliveredCause, ViolationRule
from otel_mcp_resume.watch.facts import AttemptSettled, StreamReopened
from otel_mcp_resume.watch.server import Request
from tests.watch.server_world import GET_STREAM, Wire, World, seen_and_cut

NOTHING = (Outcome.PROVEN, Reason.NOTHING_OWED)
UNDELIVERED = (Outcome.GAP, Reason.UNDELIVERED)
EVICTED = (Outcome.UNPROVEN, Reason.LEDGER_EVICTED)


@pytest.fixture
def world() -> World:
    return World()


class TestWithoutToken:
    def test_the_first_opening_is_no_attempt(self, world: World) -> None:
        session = world.session()
        world.emit(session)
        world.get(session)
        assert world.verdicts == []

    def test_nothing_owed(self, world: World) -> None:
        session, _ = seen_and_cut(world)
        world.get(session)
        assert world.verdicts == [NOTHING]

    def test_what_waits_in_the_store_is_owed_and_counts_when_it_is_overtaken(self, world: World) -> None:
        session, _ = seen_and_cut(world)
        world.emit(session), world.emit(session)
        wire = world.get(session)
        assert world.verdicts == [UNDELIVERED]
        assert world.of(AttemptSettled)[0].missed_events == 2
        assert world.undelivered == {}
        world.emit(session)
        wire.write()
        assert world.undelivered == {UndeliveredCause.SKIPPED: 2}

    def test_an_old_loss_does_not_make_every_later_reopening_a_gap(self, world: World) -> None:
        session = world.session(stored=False)
        world.emit(session)
        assert world.undelivered == {UndeliveredCause.NO_STREAM: 1}
        for _ in range(3):
            world.get(session).drop(session)
        assert world.verdicts == [NOTHING, NOTHING]

    def test_a_loss_since_the_last_opening_is_a_gap_once(self, world: World) -> None:
        session = world.session(stored=False)
        world.get(session).drop(session)
        world.emit(session)
        for _ in range(2):
            world.get(session).drop(session)
        assert world.verdicts == [UNDELIVERED, NOTHING]

    def test_a_head_after_the_window_still_knows_what_was_owed(self, world: World) -> None:
        session = world.session(stored=False)
        world.get(session).drop(session)
        world.emit(session)
        exchange = world.watch.exchange(Request("GET", session_id="A"))
        session.serve(exchange)
        world.take(session.registered(GET_STREAM, exchange))
        assert world.verdicts == []
        Wire(world, exchange).head(200, "A")
        assert world.verdicts == [UNDELIVERED]

    def test_refused_because_it_is_still_open(self, world: World) -> None:
        session = world.session()
        world.get(session)
        exchange = world.watch.exchange(Request("GET", session_id="A"))
        session.serve(exchange)
        Wire(world, exchange).head(409, "A", event_stream=False).end(finished=True)
        assert world.verdicts == []

    def test_a_replay_that_nobody_asked_for(self, world: World) -> None:
        session, _ = seen_and_cut(world)
        missed = world.emit(session)
        wire = world.get(session, live=False)
        wire.replay(session, [missed])
        assert world.verdicts == [(Outcome.GAP, Reason.REPLAY_WITHOUT_TOKEN)]
        assert world.violations == [ViolationRule.REPLAY_WITHOUT_TOKEN]

    def test_a_replay_on_the_first_opening_is_a_violation_and_no_attempt(self, world: World) -> None:
        session = world.session()
        missed = [world.emit(session), world.emit(session)]
        world.get(session, live=False).replay(session, missed)
        assert world.verdicts == []
        assert world.violations == [ViolationRule.REPLAY_WITHOUT_TOKEN]

    def test_of_a_session_that_was_connected_before_anybody_watched(self, world: World) -> None:
        session = world.watch.session("A", standalone=GET_STREAM, is_blind=True)
        for _ in range(2):
            world.get(session).drop(session)
        assert world.verdicts == [EVICTED]

    def test_downtime(self, world: World) -> None:
        session, _ = seen_and_cut(world)
        world.now += 7
        world.get(session)
        assert [fact.downtime for fact in world.of(StreamReopened)] == [7]
        assert world.of(AttemptSettled)[0].downtime == 7

"""The verdicts of the server column, each from the ledger, each as soon as it is certain."""

from __future__ import annotations

import pytest

from otel_mcp_resume.rules.terms import Generation, Outcome, Reason, Stream, UndeliveredCause, ViolationRule
from otel_mcp_resume.watch.facts import AttemptSettled, StreamReopened
from otel_mcp_resume.watch.server import Request, Session
from otel_mcp_resume.watch.server_session import RESPONSE
from tests.watch.server_world import GET_STREAM, Wire, World

COMPLETE = (Outcome.PROVEN, Reason.REPLAY_COMPLETE)
NOTHING = (Outcome.PROVEN, Reason.NOTHING_OWED)
UNDELIVERED = (Outcome.GAP, Reason.UNDELIVERED)
UNKNOWN = (Outcome.GAP, Reason.UNKNOWN_TOKEN_ACCEPTED)
EVICTED = (Outcome.UNPROVEN, Reason.LEDGER_EVICTED)


def seen_and_cut(world: World) -> tuple[Session, str]:
    """A session whose standalone stream was cut after one message."""
    session = world.session()
    wire = world.get(session)
    seen = world.emit(session)
    wire.write().drop(session)
    world.facts.clear()
    return session, seen


@pytest.fixture
def world() -> World:
    return World()


class TestWithToken:
    def test_all_that_was_missed_is_replayed(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        missed = [world.emit(session), world.emit(session)]
        world.replayed(session, seen, missed)
        assert world.verdicts == [COMPLETE]
        assert not world.violations
        assert not world.deadlines.open

    def test_nothing_was_missed(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        world.replayed(session, seen, [])
        assert world.verdicts == [NOTHING]

    def test_it_waits_until_the_last_owed_message_is_written(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        missed = [world.emit(session), world.emit(session)]
        wire = world.get(session, seen)
        replay = wire.replay(session, missed, write=False)
        replay.returned(GET_STREAM)
        world.take(session.registered(GET_STREAM, wire.exchange))
        wire.write()
        assert world.verdicts == []
        wire.write()
        assert world.verdicts == [COMPLETE]

    def test_one_is_lost_between_replay_and_live(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        missed = world.emit(session)
        wire = world.get(session, seen)
        replay = wire.replay(session, [missed])
        world.emit(session)  # stored after the replay has read the store
        replay.returned(GET_STREAM)
        assert world.verdicts == []
        world.take(session.registered(GET_STREAM, wire.exchange))
        assert world.verdicts == [UNDELIVERED]
        assert world.of(AttemptSettled)[0].missed_events == 1
        assert world.undelivered == {}
        world.emit(session)
        wire.write()
        assert world.undelivered == {UndeliveredCause.SKIPPED: 1}

    def test_what_is_still_being_stored_when_the_window_closes_goes_live(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        wire = world.get(session, seen)
        wire.replay(session, []).returned(GET_STREAM)
        session.storing += 1
        world.take(session.registered(GET_STREAM, wire.exchange))
        world.take(session.stored(GET_STREAM, "late"))
        wire.write()
        assert world.verdicts == [NOTHING]
        world.end(session)
        wire.end()
        assert world.undelivered == {}

    def test_what_is_replayed_before_its_store_call_returns_is_no_foreign_event(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        wire = world.get(session, seen)
        session.storing += 1
        replay = wire.replay(session, ["99"])  # in the store already, but the router doesn't know its id yet
        assert world.violations == []
        replay.returned(GET_STREAM)
        world.take(session.registered(GET_STREAM, wire.exchange))
        world.take(session.stored(GET_STREAM, "99"))
        wire.write()
        assert world.verdicts == [NOTHING]
        assert world.violations == []
        assert world.duplicates == ["redelivered"]
        assert world.undelivered == {}

    def test_nor_is_it_lost_if_the_connection_ends_before_the_store_call_returns(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        wire = world.get(session, seen)
        session.storing += 1
        wire.replay(session, ["99"])
        wire.end()
        world.take(session.stored(GET_STREAM, "99"))
        world.end(session)
        assert world.undelivered == {}

    def test_a_foreign_event_is_judged_when_the_store_call_in_between_has_returned(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        wire = world.get(session, seen)
        session.storing += 1
        wire.replay(session, ["foreign"])
        assert world.verdicts == []
        world.take(session.stored(GET_STREAM, "99"))
        assert world.verdicts == [(Outcome.GAP, Reason.CROSS_SESSION_REPLAY)]
        assert world.violations == [ViolationRule.CROSS_SESSION_REPLAY]

    def test_the_store_has_lost_the_token(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        world.emit(session)
        wire = world.get(session, seen)
        wire.replay(session, []).returned(None)
        assert world.verdicts == [UNDELIVERED]

    def test_written_but_not_acknowledged_is_owed(self, world: World) -> None:
        session = world.session()
        wire = world.get(session)
        first = world.emit(session)
        world.emit(session)
        wire.write(2).drop(session)
        wire = world.get(session, first)
        wire.replay(session, []).returned(None)
        assert world.verdicts == [UNDELIVERED]
        assert world.undelivered == {}

    def test_replaying_what_was_written_but_not_acknowledged_is_no_repetition(self, world: World) -> None:
        session = world.session()
        wire = world.get(session)
        first, second = world.emit(session), world.emit(session)
        wire.write(2).drop(session)
        world.replayed(session, first, [second])
        assert world.verdicts == [COMPLETE]
        assert world.duplicates == []

    def test_an_inclusive_replay_is_complete_and_its_first_event_redelivered(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        missed = world.emit(session)
        world.replayed(session, seen, [seen, missed])
        assert world.verdicts == [COMPLETE]
        assert world.duplicates == ["redelivered"]

    def test_out_of_order_is_not_in_order(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        first, second = world.emit(session), world.emit(session)
        world.replayed(session, seen, [second, first])
        assert world.verdicts == [UNDELIVERED]
        world.end(session)
        assert world.undelivered == {}

    def test_a_store_that_replays_without_ids(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        world.emit(session), world.emit(session)
        wire = world.get(session, seen)
        replay = wire.replay(session, [])
        replay.handed(None)
        replay.handed(None)
        wire.write(2)
        replay.returned(GET_STREAM)
        world.take(session.registered(GET_STREAM, wire.exchange))
        assert world.verdicts == [COMPLETE]

    def test_beside_an_open_stream_the_replay_is_all_there_is(self, world: World) -> None:
        session = world.session()
        old = world.get(session)
        first, second = world.emit(session), world.emit(session)
        old.write(2)
        wire = world.get(session, first)
        replay = wire.replay(session, [second])
        world.emit(session)  # goes to the old connection
        old.write()
        replay.returned(GET_STREAM)
        assert world.verdicts == [COMPLETE]

    def test_unknown(self, world: World) -> None:
        session = world.session()
        wire = world.get(session, "no-such-id")
        wire.replay(session, []).returned(None)
        assert world.verdicts == [UNKNOWN]
        assert world.violations == [ViolationRule.UNKNOWN_TOKEN_ACCEPTED]
        assert world.of(AttemptSettled)[0].stream is Stream.STANDALONE

    def test_of_another_session_and_replayed(self, world: World) -> None:
        one, other = world.session("A"), world.session("B")
        foreign = world.emit(one)
        wire = world.get(other, foreign, header="B")
        wire.replay(other, [foreign]).returned("7")
        world.take(other.registered("7", wire.exchange))
        assert world.verdicts == [(Outcome.GAP, Reason.CROSS_SESSION_REPLAY)]
        assert world.violations == [ViolationRule.CROSS_SESSION_REPLAY]

    def test_of_another_session_and_nothing_replayed(self, world: World) -> None:
        one, other = world.session("A"), world.session("B")
        wire = world.get(other, world.emit(one), header="B")
        wire.replay(other, []).returned(None)
        assert world.verdicts == [UNKNOWN]

    def test_events_of_another_stream(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        foreign = world.emit(session, "12")
        wire = world.get(session, seen)
        wire.replay(session, [foreign])
        assert world.verdicts == [(Outcome.GAP, Reason.CROSS_STREAM_REPLAY)]
        assert world.violations == [ViolationRule.CROSS_STREAM_REPLAY]

    def test_events_of_another_stream_after_the_verdict_are_a_violation(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        wire = world.get(session, seen)
        wire.replay(session, []).returned("12")
        world.take(session.registered("12", wire.exchange))
        assert world.verdicts == [NOTHING]
        world.emit(session, "12")
        wire.write()
        assert world.verdicts == [NOTHING]
        assert world.violations == [ViolationRule.CROSS_STREAM_REPLAY]

    def test_of_a_request_that_was_answered_in_full(self, world: World) -> None:
        session = world.session()
        post = world.post(session, "11")
        token = world.emit(session, "11", RESPONSE, "11")
        post.write().end(finished=True)
        world.replayed(session, token, [], "11")
        assert world.verdicts == [NOTHING]
        assert world.of(AttemptSettled)[0].stream is Stream.REQUEST

    def test_a_priming_event_is_a_place_in_the_stream(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        missed = world.emit(session)
        wire = world.get(session, seen)
        replay = wire.replay(session, [missed])
        replay.returned(GET_STREAM)
        session.storing += 1
        world.take(session.primed(GET_STREAM, "primed"))
        wire.exchange.primed("primed")
        world.take(session.registered(GET_STREAM, wire.exchange))
        wire.drop(session)
        world.replayed(session, "primed", [])
        assert world.verdicts == [COMPLETE, NOTHING]
        assert world.of(AttemptSettled)[0].last_event_id == "primed"

    def test_the_client_leaves_in_the_middle(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        missed = [world.emit(session), world.emit(session)]
        wire = world.get(session, seen)
        wire.replay(session, missed[:1])
        wire.end()
        assert world.verdicts == [UNDELIVERED]
        assert world.of(AttemptSettled)[0].missed_events == 1
        world.replayed(session, missed[0], missed[1:])
        world.end(session)
        assert world.undelivered == {}

    def test_the_time_is_up_while_the_store_hangs(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        missed = world.emit(session)
        wire = world.get(session, seen)
        wire.replay(session, [missed])
        world.now += 20
        world.deadlines.pass_all()
        assert world.verdicts == [COMPLETE]
        assert world.of(AttemptSettled)[0].elapsed == 20

    def test_the_time_is_up_and_something_is_missing(self, world: World) -> None:
        session, seen = seen_and_cut(world)
        world.emit(session)
        wire = world.get(session, seen)
        wire.replay(session, [])
        world.deadlines.pass_all()
        assert world.verdicts == [UNDELIVERED]
        wire.end()
        assert len(world.verdicts) == 1


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

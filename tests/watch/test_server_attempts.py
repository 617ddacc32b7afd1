"""A re-opening that shows a token: verdicts from the ledger, each as soon as it is certain."""

from __future__ import annotations

import pytest

from otel_mcp_resume.rules.terms import Outcome, Reason, Stream, UndeliveredCause, ViolationRule
from otel_mcp_resume.watch.facts import AttemptSettled
from otel_mcp_resume.watch.server_session import RESPONSE
from tests.watch.server_world import GET_STREAM, World, seen_and_cut

COMPLETE = (Outcome.PROVEN, Reason.REPLAY_COMPLETE)
NOTHING = (Outcome.PROVEN, Reason.NOTHING_OWED)
UNDELIVERED = (Outcome.GAP, Reason.UNDELIVERED)
UNKNOWN = (Outcome.GAP, Reason.UNKNOWN_TOKEN_ACCEPTED)


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

"""Messages that can no longer reach the client: counted once, under the right cause, and only then."""

from __future__ import annotations

import pytest

from otel_mcp_resume.rules.terms import Generation, Stream, UndeliveredCause, ViolationRule
from otel_mcp_resume.watch.facts import EventsUndelivered
from otel_mcp_resume.watch.server import Request
from otel_mcp_resume.watch.server_session import REQUEST, RESPONSE
from tests.watch.server_world import GET_STREAM, Wire, World

NO_STREAM = UndeliveredCause.NO_STREAM
SKIPPED = UndeliveredCause.SKIPPED
SESSION_ENDED = UndeliveredCause.SESSION_ENDED


@pytest.fixture
def world() -> World:
    return World()


def test_announced_before_anybody_listens(world: World) -> None:
    session = world.session(stored=False)
    world.emit(session), world.emit(session)
    assert world.undelivered == {NO_STREAM: 2}
    assert {fact.stream for fact in world.of(EventsUndelivered)} == {Stream.STANDALONE}


def test_an_answer_whose_connection_is_gone(world: World) -> None:
    session = world.session(stored=False)
    wire = world.post(session, "5")
    wire.drop(session, "5")
    world.emit(session, "5", RESPONSE, "5")
    assert world.undelivered == {NO_STREAM: 1}
    assert world.of(EventsUndelivered)[0].stream is Stream.REQUEST


def test_an_answer_that_the_client_does_not_want_is_no_loss(world: World) -> None:
    session = world.session(stored=False)
    wire = world.post(session, "5")
    session.inbox.cancelled("5")
    wire.drop(session, "5")
    world.emit(session, "5", RESPONSE, "5")
    assert world.undelivered == {}


def test_nor_is_one_that_waits_in_the_store(world: World) -> None:
    session = world.session()
    wire = world.post(session, "5")
    session.inbox.cancelled("5")
    wire.drop(session, "5")
    world.emit(session, "5", RESPONSE, "5")
    world.end(session)
    assert world.undelivered == {}


def test_on_its_way_when_the_connection_ended(world: World) -> None:
    session = world.session(stored=False)
    wire = world.get(session)
    world.emit(session), world.emit(session)
    wire.write().drop(session)
    assert world.undelivered == {NO_STREAM: 1}


def test_on_its_way_when_the_connection_ended_but_kept_in_the_store(world: World) -> None:
    session = world.session()
    wire = world.get(session)
    first, second = world.emit(session), world.emit(session)
    wire.write().drop(session)
    assert world.undelivered == {}
    world.replayed(session, first, [second])
    world.end(session)
    assert world.undelivered == {}


def test_overtaken(world: World) -> None:
    session = world.session()
    world.emit(session), world.emit(session)
    wire = world.get(session)
    world.emit(session)
    assert world.undelivered == {}
    wire.write()
    assert world.undelivered == {SKIPPED: 2}
    world.end(session)
    wire.end()
    assert world.undelivered == {SKIPPED: 2}


def test_a_token_beyond_a_lost_message_says_that_it_will_not_be_asked_for(world: World) -> None:
    session = world.session()
    wire = world.get(session)
    wire.drop(session)
    world.emit(session)
    session.storing += 1
    world.take(session.primed(GET_STREAM, "beyond"))
    world.replayed(session, "beyond", [])
    assert world.undelivered == {SKIPPED: 1}


def test_left_out_by_a_replay_that_went_on(world: World) -> None:
    session = world.session()
    wire = world.get(session)
    token = world.emit(session)
    wire.write().drop(session)
    _, last = world.emit(session), world.emit(session)
    wire = world.get(session, token)
    wire.replay(session, [last]).returned(None)
    assert world.undelivered == {SKIPPED: 1}


def test_owed_when_the_session_ends(world: World) -> None:
    session = world.session()
    wire = world.post(session, "5")
    wire.drop(session, "5")
    world.emit(session, "5")
    world.emit(session, "5", RESPONSE, "5")
    world.emit(session)
    assert world.undelivered == {}
    world.end(session)
    assert world.undelivered == {SESSION_ENDED: 3}
    assert {(fact.stream, fact.count) for fact in world.of(EventsUndelivered)} == {
        (Stream.REQUEST, 2),
        (Stream.STANDALONE, 1),
    }


def test_what_is_on_its_way_when_the_session_ends_may_still_arrive(world: World) -> None:
    session = world.session()
    wire = world.post(session, "5")
    world.emit(session, "5", RESPONSE, "5")
    world.end(session)
    assert world.undelivered == {}
    wire.write().end(finished=True)
    assert world.undelivered == {}
    assert session.is_finished


def test_the_store_refuses(world: World) -> None:
    session = world.session()
    session.storing += 1
    world.take(session.store_failed(GET_STREAM, 0, "", is_message=True))
    assert world.undelivered == {NO_STREAM: 1}
    session.storing += 1
    world.take(session.store_failed(GET_STREAM, 0, "", is_message=False))
    assert world.undelivered == {NO_STREAM: 1}
    assert session.storing == 0


def test_after_the_end_nothing_is_counted(world: World) -> None:
    session = world.session()
    world.end(session)
    world.emit(session)
    session.storing += 1
    world.take(session.primed(GET_STREAM, "p"))
    world.take(session.end())
    assert world.undelivered == {}
    assert world.watch.remembered == (0, 0)


class TestJson:
    def test_the_answer_is_all_that_fits(self, world: World) -> None:
        session = world.session(stored=False, json=True)
        wire = world.post(session, "5")
        world.emit(session, "5")
        world.emit(session, "5", RESPONSE, "5")
        wire.end(finished=True)
        assert world.undelivered == {}

    def test_a_question_that_belongs_to_a_call_is_lost(self, world: World) -> None:
        session = world.session(stored=False, json=True)
        world.post(session, "5")
        world.emit(session, "5", REQUEST, "q1")
        assert world.violations == [ViolationRule.PENDING_REQUEST_LOST]
        assert world.undelivered == {NO_STREAM: 1}

    def test_the_standalone_stream_is_one_like_any_other(self, world: World) -> None:
        session = world.session(json=True)
        wire = world.get(session)
        world.emit(session)
        wire.write().drop(session)
        world.emit(session)
        world.end(session)
        assert world.undelivered == {SESSION_ENDED: 1}


class TestSse:
    def test_what_was_not_written_when_the_connection_ended(self, world: World) -> None:
        session = world.watch.session("", standalone="session", generation=Generation.SSE)
        wire = Wire(world, world.watch.exchange(Request("GET"), Generation.SSE))
        session.serve(wire.exchange)
        world.take(session.registered("session", wire.exchange))
        wire.head(200, None)
        items = []
        for number in range(3):
            item, facts = session.sending("session", 0, str(number))
            world.take(facts)
            items.append(item)
        wire.write()
        session.unsent(items[2])
        world.end(session)
        wire.end()
        assert world.undelivered == {SESSION_ENDED: 1}
        assert world.counted == {(Generation.SSE, Stream.SESSION): 1}


def test_a_stream_of_which_nobody_saw_the_connection_is_taken_for_delivered(world: World) -> None:
    session = world.session(stored=False)
    world.take(session.registered(GET_STREAM, None))
    world.emit(session)
    assert world.undelivered == {}
    session.unregistered(GET_STREAM)
    world.emit(session)
    assert world.undelivered == {NO_STREAM: 1}


def test_an_id_issued_twice_for_two_messages_is_a_collision(world: World) -> None:
    session = world.session()
    world.emit(session, event_id="x")
    world.emit(session, event_id="x")
    assert world.duplicates == ["collision"]
    assert world.violations == [ViolationRule.EVENT_ID_COLLISION]


def test_a_message_may_carry_the_id_of_a_priming_event(world: World) -> None:
    session = world.session()
    session.storing += 1
    world.take(session.primed(GET_STREAM, "x"))
    world.emit(session, event_id="x")
    assert world.duplicates == []


def test_empty_ids_are_no_ids(world: World) -> None:
    session = world.session()
    for _ in range(2):
        session.storing += 1
        world.take(session.stored(GET_STREAM, ""))
    assert world.violations == []
    world.end(session)
    assert world.undelivered == {SESSION_ENDED: 2}

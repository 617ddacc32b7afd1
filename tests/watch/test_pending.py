"""Requests of the server to its client: how many wait, how long, and which of them are lost or asked twice."""

from __future__ import annotations

import pytest

from otel_mcp_resume.rules.terms import Generation, UndeliveredCause, ViolationRule
from otel_mcp_resume.watch.facts import LedgerEvicted
from otel_mcp_resume.watch.server_session import RESPONSE
from tests.watch.server_world import GET_STREAM, World

LOST = ViolationRule.PENDING_REQUEST_LOST
REPEATED = ViolationRule.PENDING_REQUEST_REPEATED


@pytest.fixture
def world() -> World:
    return World()


def test_asked_and_answered(world: World) -> None:
    session = world.session(stored=False)
    wire = world.get(session)
    world.ask(session, "1")
    wire.write()
    assert world.pending == 1
    world.take(session.inbox.replied("1"))
    world.take(session.inbox.replied("1"))
    assert world.pending == 0
    world.end(session)
    wire.end()
    assert world.violations == []


def test_the_age_is_that_of_the_oldest(world: World) -> None:
    one, other = world.session("A"), world.session("B")
    assert world.watch.oldest_pending() == {}
    world.ask(one, "1")
    world.now += 5
    world.ask(other, "1")
    world.now += 2
    assert world.watch.oldest_pending() == {Generation.STREAMABLE_HTTP: 7}
    world.take(one.inbox.replied("1"))
    assert world.watch.oldest_pending() == {Generation.STREAMABLE_HTTP: 2}
    world.end(other)
    assert world.watch.oldest_pending() == {}


def test_without_a_stream_and_without_a_store_it_is_lost_at_once_and_waits_for_ever(world: World) -> None:
    session = world.session(stored=False)
    world.ask(session, "1")
    assert world.violations == [LOST]
    assert world.undelivered == {UndeliveredCause.NO_STREAM: 1}
    assert world.pending == 1
    world.end(session)
    assert world.violations == [LOST]
    assert world.pending == 0


def test_overtaken_in_the_store(world: World) -> None:
    session = world.session()
    world.ask(session, "1")
    wire = world.get(session)
    assert world.violations == []
    world.emit(session)
    wire.write()
    assert world.violations == [LOST]
    world.deadlines.pass_all()
    assert world.violations == [LOST]


def test_the_first_get_must_deliver_it_in_time(world: World) -> None:
    session = world.session()
    world.ask(session, "1")
    world.get(session)
    world.deadlines.pass_all()
    assert world.violations == [LOST]
    assert world.undelivered == {}


def test_answered_in_time_after_all(world: World) -> None:
    session = world.session()
    world.ask(session, "1")
    world.get(session)
    world.take(session.inbox.replied("1"))
    world.deadlines.pass_all()
    assert world.violations == []


def test_on_a_stream_that_is_still_open_it_is_delivered(world: World) -> None:
    session = world.session()
    post = world.post(session, "5")
    world.ask(session, "1", "5")
    post.write()
    world.get(session)
    assert not world.deadlines.open
    world.deadlines.pass_all()
    assert world.violations == []


def test_what_a_connection_took_with_it_must_be_delivered_again(world: World) -> None:
    session = world.session()
    wire = world.get(session)
    world.ask(session, "1")
    wire.write().drop(session)
    world.get(session)
    world.deadlines.pass_all()
    assert world.violations == [LOST]


def test_a_token_acknowledges_it(world: World) -> None:
    session = world.session()
    wire = world.get(session)
    question = world.ask(session, "1")
    wire.write().drop(session)
    world.replayed(session, question, [])
    world.get(session)
    world.deadlines.pass_all()
    assert world.violations == []


def test_delivered_by_a_replay(world: World) -> None:
    session = world.session()
    wire = world.get(session)
    token = world.emit(session)
    wire.write().drop(session)
    question = world.ask(session, "1")
    wire = world.replayed(session, token, [question])
    assert world.violations == []
    world.end(session)
    wire.end()
    assert world.violations == [LOST]  # nobody answered it


def test_unanswered_when_its_session_ends(world: World) -> None:
    session = world.session()
    post = world.post(session, "5")
    world.ask(session, "1", "5")
    post.write()
    world.end(session)
    post.end()
    assert world.violations == [LOST]
    assert world.pending == 0


def test_repeated_by_an_inclusive_replay(world: World) -> None:
    session = world.session()
    post = world.post(session, "5")
    question = world.ask(session, "1", "5")
    post.write().drop(session, "5")
    world.replayed(session, question, [question], "5")
    assert world.violations == [REPEATED]


def test_not_acknowledged_it_is_asked_again_by_right(world: World) -> None:
    session = world.session()
    wire = world.get(session)
    token = world.emit(session)
    question = world.ask(session, "1")
    wire.write(2).drop(session)
    world.replayed(session, token, [question])
    assert world.violations == []


def test_repeated_on_another_stream(world: World) -> None:
    session = world.session()
    post = world.post(session, "5")
    question = world.ask(session, "1", "5")
    post.write()
    get = world.get(session)
    token = world.emit(session)
    get.write().drop(session)
    world.get(session, token).replay(session, [question])
    assert world.violations == [ViolationRule.CROSS_STREAM_REPLAY, REPEATED]


def test_the_server_gives_it_up(world: World) -> None:
    session = world.session()
    world.ask(session, "1")
    world.take(session.withdrew("1"))
    assert world.pending == 0
    world.end(session)
    assert world.violations == []


def test_an_id_used_again_replaces_the_one_before(world: World) -> None:
    session = world.session()
    world.ask(session, "1")
    world.ask(session, "1")
    assert world.pending == 1
    world.take(session.inbox.replied("1"))
    assert world.pending == 0


def test_one_that_never_waits_for_an_answer_can_not_fill_the_memory() -> None:
    world = World(max_events=5)
    session = world.session(stored=False)
    wire = world.get(session)
    for number in range(20):
        world.ask(session, str(number))
        wire.write()
    assert world.pending == 5
    assert sum(fact.count for fact in world.of(LedgerEvicted)) == 15
    assert len(session.pending) == 5


def test_ids_of_two_sessions_do_not_meet(world: World) -> None:
    one, other = world.session("A"), world.session("B")
    world.ask(one, "1"), world.ask(other, "1")
    world.take(one.inbox.replied("1"))
    assert world.pending == 1
    assert set(other.pending) == {"1"}


def test_a_response_of_the_server_is_no_request(world: World) -> None:
    session = world.session()
    world.emit(session, GET_STREAM, RESPONSE, "None")
    assert world.pending == 0

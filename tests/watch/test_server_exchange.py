"""Sessions and connections of a server: when they open, how they end, and that nothing of them stays."""

from __future__ import annotations

import gc
import threading

import pytest

from otel_mcp_resume.rules.terms import Disconnect, Generation, Side, Stream
from otel_mcp_resume.watch.deadlines import Deadlines
from otel_mcp_resume.watch.facts import SessionClosed, SessionOpened, StreamClosed, StreamOpened
from otel_mcp_resume.watch.server import End, Exchange, Request, ServerWatch
from otel_mcp_resume.watch.server_session import RESPONSE
from tests.watch.server_world import GET_STREAM, Limits, Wire, World


@pytest.fixture
def world() -> World:
    return World()


def test_a_session_is_learned_from_a_2xx_that_names_it(world: World) -> None:
    session = world.watch.session("A", standalone=GET_STREAM)
    refused = Wire(world, world.watch.exchange(Request("POST")))
    session.serve(refused.exchange)
    refused.head(400, "A", event_stream=False).end(finished=True)
    assert world.of(SessionOpened) == []
    for _ in range(2):
        accepted = Wire(world, world.watch.exchange(Request("POST")))
        session.serve(accepted.exchange)
        accepted.head(200, "A").end(finished=True)
    assert len(world.of(SessionOpened)) == 1
    world.end(session)
    world.end(session)
    assert len(world.of(SessionClosed)) == 1


def test_a_session_that_was_never_open_does_not_close(world: World) -> None:
    world.end(world.watch.session("A", standalone=GET_STREAM))
    assert world.of(SessionClosed) == []


def test_a_server_without_sessions_opens_none(world: World) -> None:
    session = world.session(None, stored=False)
    world.end(session)
    assert world.of(SessionOpened) == []
    assert world.of(SessionClosed) == []


@pytest.mark.parametrize(
    ("end", "answered", "cause"),
    [
        (End(finished=True), True, Disconnect.COMPLETED),
        (End(finished=True), False, Disconnect.CLOSED),
        (End(left=True), False, Disconnect.RESET),
        (End(cancelled=True), False, Disconnect.CANCELLED),
        (End(left=True, cancelled=True), False, Disconnect.CANCELLED),
        (End(), False, Disconnect.CANCELLED),
    ],
)
def test_causes(world: World, end: End, cause: Disconnect, *, answered: bool) -> None:
    session = world.session(stored=False)
    world.facts.clear()
    wire = world.post(session, "5")
    if answered:
        world.emit(session, "5", RESPONSE, "5")
        wire.write()
    world.take(wire.exchange.ended(end))
    closed = world.of(StreamClosed)
    assert [(fact.stream, fact.cause) for fact in closed] == [(Stream.REQUEST, cause)]


def test_of_the_generation_without_sessions(world: World) -> None:
    for rpc_method, kind in (("tools/call", Stream.REQUEST), ("subscriptions/listen", Stream.LISTEN)):
        wire = Wire(world, world.watch.exchange(Request("POST", rpc_method=rpc_method), Generation.STATELESS))
        wire.head(200, None).write(2).end(finished=True)
        assert world.counted[Generation.STATELESS, kind] == 2
    assert [fact.cause for fact in world.of(StreamClosed)] == [Disconnect.COMPLETED] * 2


def test_a_json_answer_is_no_stream(world: World) -> None:
    Wire(world, world.watch.exchange(Request("POST"))).head(200, None, event_stream=False).end(finished=True)
    assert world.of(StreamOpened) == []
    assert world.of(StreamClosed) == []


def test_messages_are_counted_by_the_stream_that_carries_them(world: World) -> None:
    session = world.session(stored=False)
    world.counted.clear()
    get, post = world.get(session), world.post(session, "5")
    world.emit(session), world.emit(session), world.emit(session, "5")
    get.write(2)
    post.write()
    assert world.counted == {
        (Generation.STREAMABLE_HTTP, Stream.STANDALONE): 2,
        (Generation.STREAMABLE_HTTP, Stream.REQUEST): 1,
    }


def test_an_exchange_keeps_nothing_of_its_session_alive(world: World) -> None:
    session = world.session()
    wire = world.get(session)
    world.emit(session)
    exchange = wire.exchange
    wire.drop(session)
    world.end(session)
    assert (exchange.session, exchange.stream, exchange.live, exchange.attempt) == (None, None, None, None)
    assert not exchange.queue
    world.facts.clear()
    gc.collect()
    assert not [thing for thing in gc.get_referrers(session) if isinstance(thing, (Exchange, dict, list))]


def test_what_comes_after_the_end_of_an_exchange_is_ignored(world: World) -> None:
    session = world.session()
    wire = world.get(session)
    wire.end()
    facts = len(world.facts)
    session.serve(wire.exchange)
    world.take(session.registered(GET_STREAM, wire.exchange))
    world.take(session.replay(wire.exchange).returned(None))
    assert session.serving == 0
    assert len(world.facts) == facts


def test_sides(world: World) -> None:
    world.session()
    assert {fact.side for fact in world.of(StreamOpened)} == {Side.SERVER}


def test_deadlines_come_from_another_thread() -> None:
    emitted = threading.Event()
    deadlines = Deadlines(0.01, lambda _, error: pytest.fail(str(error)))
    watch = ServerWatch(
        emit=lambda facts: emitted.set() if list(facts) else None,
        events=lambda *_: lambda: None,
        deadlines=deadlines,
        limits=Limits(),
    )
    session = watch.session("A", standalone=GET_STREAM, is_stored=True)
    session.inbox.initialized("tester")
    session.storing += 1
    session.stored(GET_STREAM, "1")
    session.storing += 1
    session.stored(GET_STREAM, "2")
    exchange = watch.exchange(Request("GET", session_id="A", token="1"))
    session.serve(exchange)
    assert exchange.head(200, event_stream=True, session_id="A")
    assert emitted.wait(10)
    deadlines.close()


def test_a_forked_child_holds_no_lock(world: World) -> None:
    world.watch._state.lock.acquire()
    world.watch.after_fork()
    world.session()
    assert world.watch.oldest_pending() == {}


def test_a_session_has_its_own_id_also_if_its_first_request_shows_a_token_of_another(world: World) -> None:
    session = world.watch.session("A", standalone=GET_STREAM, is_stored=True)
    wire = Wire(world, world.watch.exchange(Request("POST", token="4821", peer=("peer",))))
    session.serve(wire.exchange)
    wire.head(200, "A")
    assert [fact.context.session_id for fact in world.of(SessionOpened)] == ["A"]

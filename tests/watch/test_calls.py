"""A call is a repetition if the one before was left without an answer, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from otel_mcp_resume.rules.terms import ViolationRule
from otel_mcp_resume.watch.calls import LIMIT, WINDOW, CallBook, Tools
from otel_mcp_resume.watch.server import Request, Session
from otel_mcp_resume.watch.server_session import RESPONSE
from tests.watch.server_world import Wire, World

DUPLICATE = [ViolationRule.DUPLICATE_CALL]


@pytest.fixture
def world() -> World:
    return World()


def call(
    world: World,
    session: Session,
    rpc_id: str,
    *,
    tool: str = "pay",
    arguments: Any = None,
    peer: tuple[str, ...] = ("peer",),
) -> Wire:
    """A `tools/call` is executed; its connection."""
    wire = Wire(world, world.watch.exchange(Request("POST", session_id=session.session_id, peer=peer)))
    session.serve(wire.exchange)
    world.take(session.registered(rpc_id, wire.exchange))
    wire.head(200, session.session_id)
    world.take(session.inbox.called(wire.exchange, rpc_id, tool, arguments))
    return wire


def answer(world: World, session: Session, rpc_id: str, wire: Wire) -> None:
    world.emit(session, rpc_id, RESPONSE, rpc_id)
    wire.write().end(finished=True)


def test_answered_calls_may_be_made_again(world: World) -> None:
    one, other = world.session("A", stored=False), world.session("B", stored=False)
    for session, rpc_id in ((one, "1"), (other, "1"), (one, "2"), (one, "1")):
        answer(world, session, rpc_id, call(world, session, rpc_id))
    assert world.violations == []


def test_the_same_id_again(world: World) -> None:
    session = world.session(stored=False)
    call(world, session, "5").drop(session, "5")
    world.emit(session, "5", RESPONSE, "5")
    call(world, session, "5")
    assert world.violations == DUPLICATE


def test_the_same_id_while_the_first_is_running(world: World) -> None:
    session = world.session(stored=False)
    call(world, session, "5")
    call(world, session, "5")
    assert world.violations == DUPLICATE


def test_the_same_id_for_another_call_is_none(world: World) -> None:
    session = world.session(stored=False)
    call(world, session, "5")
    call(world, session, "5", tool="look")
    assert world.violations == []


def test_in_a_new_session_after_a_cut(world: World) -> None:
    one, other = world.session("A", stored=False), world.session("B", stored=False)
    call(world, one, "5", arguments={"to": "Eve", "amount": 1}).drop(one, "5")
    call(world, other, "6", arguments={"amount": 1, "to": "Eve"})
    assert world.violations == DUPLICATE
    call(world, other, "7", arguments={"amount": 1, "to": "Eve"})
    assert world.violations == DUPLICATE


def test_running_beside_each_other_without_a_cut(world: World) -> None:
    one, other = world.session("A", stored=False), world.session("B", stored=False)
    call(world, one, "5")
    call(world, other, "6")
    assert world.violations == []


@pytest.mark.parametrize(
    "again",
    [
        {"arguments": {"amount": 2}},
        {"tool": "look", "arguments": {"amount": 1}},
        {"peer": ("another",), "arguments": {"amount": 1}},
    ],
)
def test_other_arguments_tools_and_clients(world: World, again: dict[str, Any]) -> None:
    session = world.session(stored=False)
    call(world, session, "5", arguments={"amount": 1}).drop(session, "5")
    call(world, session, "6", **again)
    assert world.violations == []


def test_another_program_behind_the_same_address(world: World) -> None:
    one, other = world.session("A", stored=False), world.session("B", stored=False)
    other.inbox.initialized("another 2")
    call(world, one, "5").drop(one, "5")
    call(world, other, "6")
    assert world.violations == []


def test_the_window_passes(world: World) -> None:
    session = world.session(stored=False)
    call(world, session, "5").drop(session, "5")
    world.now += WINDOW + 1
    call(world, session, "6")
    assert world.violations == []


def test_answered_on_a_resumed_stream(world: World) -> None:
    session = world.session()
    wire = call(world, session, "5")
    token = world.emit(session, "5")
    wire.write().drop(session, "5")
    response = world.emit(session, "5", RESPONSE, "5")
    world.replayed(session, token, [response], "5")
    call(world, session, "6")
    assert world.violations == []


def test_given_up_by_the_client(world: World) -> None:
    session = world.session(stored=False)
    wire = call(world, session, "5")
    session.inbox.cancelled("5")
    wire.drop(session, "5")
    call(world, session, "6")
    assert world.violations == []


def test_the_client_ended_its_session_itself(world: World) -> None:
    session = world.session(stored=False)
    wire = call(world, session, "5")
    delete = Wire(world, world.watch.exchange(Request("DELETE", session_id="A")))
    session.serve(delete.exchange)
    world.end(session)
    wire.drop(session, "5")
    delete.head(200, "A", event_stream=False).end(finished=True)
    call(world, world.session("B", stored=False), "6")
    assert world.violations == []


def test_a_refused_delete_ends_nothing(world: World) -> None:
    session = world.session(stored=False)
    delete = Wire(world, world.watch.exchange(Request("DELETE", session_id="A")))
    session.serve(delete.exchange)
    delete.head(405, None, event_stream=False).end(finished=True)
    call(world, session, "5").drop(session, "5")
    call(world, session, "6")
    assert world.violations == DUPLICATE


@pytest.mark.parametrize("hint", ["idempotentHint", "readOnlyHint"])
def test_a_harmless_tool(world: World, hint: str) -> None:
    session = world.session(stored=False)
    session.inbox.listed("2")
    assert session.inbox.expects_tools("2")
    session.tools.learn({"tools": [{"name": "look", "annotations": {hint: True}}, {"name": "pay"}]})
    for tool in ("look", "pay"):
        call(world, session, f"5{tool}", tool=tool).drop(session, f"5{tool}")
        call(world, session, f"6{tool}", tool=tool)
    assert world.violations == DUPLICATE


def test_tools_are_learned_from_whatever_a_server_says() -> None:
    tools = Tools()
    strange: list[Any] = [None, [], {}, {"tools": [5, {}, {"name": 5}, {"name": "a", "annotations": 5}]}]
    for result in strange:
        tools.learn(result)
    tools.learn({"tools": [{"name": "a", "annotations": {"readOnlyHint": True}}]})
    assert tools.are_harmless("a")
    tools.learn({"tools": [{"name": "a", "annotations": {"readOnlyHint": False}}]})
    assert not tools.are_harmless("a")
    tools.learn({"tools": [{"name": str(n), "annotations": {"readOnlyHint": True}} for n in range(LIMIT + 5)]})
    assert not tools.are_harmless("4")
    assert tools.are_harmless(str(LIMIT))


def test_arguments_of_any_kind_and_no_more_than_a_digest_of_them() -> None:
    book = CallBook(lambda: 0.0)
    secret = "\ud800" + "x" * 100
    for arguments in (None, {"secret": secret}, {"a": {1, 2}}, [float("nan")]):
        one, other = (book.call(("peer",), "name", "tool", arguments) for _ in range(2))
        assert one.key == other.key
        assert len(one.key) == 16
    assert (
        book.call(("p",), "n", "t", {"secret": secret}).key
        != CallBook(lambda: 0.0).call(("p",), "n", "t", {"secret": secret}).key
    )


def test_unanswered_calls_are_bounded(world: World) -> None:
    session = world.session(stored=False)
    for number in range(LIMIT + 10):
        call(world, session, str(number), arguments=number).drop(session, str(number))
        world.emit(session, str(number), RESPONSE, str(number))
    assert len(world.watch._state.calls._left) == LIMIT
    call(world, session, "first", arguments=0)
    assert world.violations == []
    call(world, session, "last", arguments=LIMIT + 9)
    assert world.violations == DUPLICATE


def test_cancellations_of_requests_that_never_were_are_bounded(world: World) -> None:
    session = world.session(stored=False)
    for number in range(1000):
        session.inbox.cancelled(str(number))
        session.inbox.listed(str(number))
    assert not session.inbox.expects_tools("0")
    assert session.inbox.expects_tools("999")


def test_a_session_that_was_there_before_the_cut_makes_calls_of_its_own() -> None:
    """Replicas behind one address, with one name and the same call: one of them is killed."""
    book = CallBook(lambda: 100.0)
    cut = book.call(("peer",), "agent", "poll", {}, "A")
    book.cut(cut)
    assert not book.repeats(book.call(("peer",), "agent", "poll", {}, "B"), began=99.0)
    assert book.repeats(book.call(("peer",), "agent", "poll", {}, "A"), began=99.0)
    book.cut(cut)
    assert book.repeats(book.call(("peer",), "agent", "poll", {}, "C"), began=101.0)

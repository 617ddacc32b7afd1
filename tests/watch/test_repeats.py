from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from otel_mcp_resume.watch.repeats import LIMIT, WINDOW, UnansweredCalls


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def calls(clock: Clock | None = None) -> UnansweredCalls:
    return UnansweredCalls(clock or Clock())


PAY = ("https://here", "pay", {"order": 7, "to": ["a", None, 1.5]})


def test_a_call_that_was_left_and_comes_again_is_a_repetition_once() -> None:
    memory = calls()
    assert not memory.repeats(*PAY)
    memory.left(*PAY)
    assert memory.repeats(*PAY)
    assert not memory.repeats(*PAY)


@pytest.mark.parametrize(
    "other",
    [
        ("https://there", "pay", PAY[2]),
        ("https://here", "Pay", PAY[2]),
        ("https://here", "pay", {"order": 8, "to": ["a", None, 1.5]}),
        ("https://here", "pay", {"order": "7", "to": ["a", None, 1.5]}),
        ("https://here", "pay", {"order": 7, "to": [None, "a", 1.5]}),
        ("https://here", "pay", {}),
        ("https://here", "pay", None),
    ],
)
def test_another_call_is_none(other: tuple[str, str, Any]) -> None:
    memory = calls()
    memory.left(*PAY)
    assert not memory.repeats(*other)
    assert memory.repeats(*PAY)


def test_the_order_of_arguments_says_nothing() -> None:
    memory = calls()
    memory.left("p", "t", {"a": 1, "b": {"c": 2, "d": 3}})
    assert memory.repeats("p", "t", {"b": {"d": 3, "c": 2}, "a": 1})


@pytest.mark.parametrize(("seconds", "repeated"), [(0.0, True), (WINDOW, True), (WINDOW + 0.1, False)])
def test_after_the_window_it_is_a_new_call(seconds: float, *, repeated: bool) -> None:
    clock = Clock()
    memory = calls(clock)
    memory.left(*PAY)
    clock.now += seconds
    assert memory.repeats(*PAY) is repeated
    assert not memory.repeats(*PAY)


def test_left_twice_the_window_begins_anew() -> None:
    clock = Clock()
    memory = calls(clock)
    memory.left(*PAY)
    clock.now += WINDOW
    memory.left(*PAY)
    clock.now += WINDOW
    assert memory.repeats(*PAY)


def listed(*tools: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": list(tools)}})


@pytest.mark.parametrize(
    ("annotations", "harmless"),
    [
        ({"readOnlyHint": True}, True),
        ({"idempotentHint": True}, True),
        ({"readOnlyHint": True, "idempotentHint": False}, True),
        ({"readOnlyHint": False, "idempotentHint": False}, False),
        ({"readOnlyHint": "true"}, False),
        ({"destructiveHint": False}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_tool_that_does_no_harm_may_be_called_twice(annotations: Any, *, harmless: bool) -> None:
    memory = calls()
    memory.tools_listed("https://here", listed({"name": "pay", "annotations": annotations}))
    memory.left(*PAY)
    assert memory.repeats(*PAY) is not harmless


def test_harmless_is_said_by_each_peer_for_its_own_tools_and_may_be_taken_back() -> None:
    memory = calls()
    memory.tools_listed("https://there", listed({"name": "pay", "annotations": {"readOnlyHint": True}}))
    memory.left(*PAY)
    assert memory.repeats(*PAY)
    memory.tools_listed("https://here", listed({"name": "pay", "annotations": {"readOnlyHint": True}}))
    memory.tools_listed("https://here", listed({"name": "pay"}))
    memory.left(*PAY)
    assert memory.repeats(*PAY)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "{",
        "[]",
        "7",
        '{"error":{}}',
        '{"result":null}',
        '{"result":{"tools":7}}',
        '{"result":{"tools":[7]}}',
        '{"result":{"tools":[{}]}}',
        '{"result":{"tools":[{"name":"pay","annotations":7}]}}',
        '{"result":{"tools":[{"name":["pay"],"annotations":{"readOnlyHint":true}}]}}',
        "[" * 100_000,
        "\ud800",
    ],
)
def test_a_tool_list_of_another_shape_teaches_nothing(data: str) -> None:
    memory = calls()
    memory.tools_listed("https://here", data)
    memory.left(*PAY)
    assert memory.repeats(*PAY)


@pytest.mark.parametrize("arguments", [None, 7, "x", {"a": {1, 2}}, {"a": object()}, {1: 2, "1": 3}, {"\ud800": "\0"}])
def test_arguments_may_be_anything(arguments: Any) -> None:
    memory = calls()
    memory.left("p", "t", arguments)
    assert memory.repeats("p", "t", arguments)


def test_what_is_remembered_is_bounded() -> None:
    memory = calls()
    for number in range(LIMIT + 1000):
        memory.left("p", "t", {"n": number})
    assert len(memory._left) == LIMIT
    assert not memory.repeats("p", "t", {"n": 999})
    assert memory.repeats("p", "t", {"n": 1000})
    harmless = {"readOnlyHint": True}
    memory.tools_listed("p", listed(*({"name": str(number), "annotations": harmless} for number in range(LIMIT + 9))))
    assert len(memory._harmless) == LIMIT


def test_several_event_loops_share_it() -> None:
    memory = calls()
    found: list[bool] = []
    for number in range(100):
        memory.left("p", "t", {"n": number})

    def work() -> None:
        found.extend(memory.repeats("p", "t", {"n": number}) for number in range(100))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sum(found) == 100


def test_another_transport_that_was_there_before_makes_calls_of_its_own() -> None:
    clock = Clock()
    memory, cut, other = calls(clock), object(), object()
    memory.left(*PAY, cut)
    assert not memory.repeats(*PAY, other, began=clock.now - 1)
    assert memory.repeats(*PAY, cut, began=clock.now - 1)
    memory.left(*PAY, cut)
    assert memory.repeats(*PAY, other, began=clock.now + 1)


def test_each_of_many_clients_that_made_the_same_call_repeats_its_own() -> None:
    clock = Clock()
    memory, clients = calls(clock), [object() for _ in range(10)]
    for client in clients:
        memory.left(*PAY, client)
        memory.left(*PAY, client)  # told twice of the same cut: once is enough
    assert [memory.repeats(*PAY, client, began=clock.now - 1) for client in clients] == [True] * 10
    assert not any(memory.repeats(*PAY, client, began=clock.now - 1) for client in clients)
    assert memory._owners == {}


def test_clients_that_begin_after_the_cut_repeat_as_many_as_were_left() -> None:
    clock = Clock()
    memory = calls(clock)
    for _ in range(3):
        memory.left(*PAY, object())
    assert [memory.repeats(*PAY, object(), began=clock.now + 1) for _ in range(5)] == [True, True, True, False, False]


def test_what_is_remembered_of_one_call_is_bounded() -> None:
    clock = Clock()
    memory = calls(clock)
    for _ in range(LIMIT + 100):
        memory.left(*PAY, object())
    assert len(memory._left) == sum(map(len, memory._owners.values())) == LIMIT
    clock.now += WINDOW + 1
    assert not memory.repeats(*PAY, object(), began=clock.now)
    assert (len(memory._left), memory._owners) == (0, {})


def test_a_call_that_was_answered_after_all_may_be_made_again() -> None:
    memory, cut = calls(), object()
    memory.left(*PAY, cut)
    memory.answered(*PAY, object())
    memory.answered("https://there", "pay", None, cut)
    assert memory._left
    memory.answered(*PAY, cut)
    assert not memory.repeats(*PAY)
    assert memory._owners == {}


@pytest.mark.parametrize(("one", "other", "repeated"), [(1, 2, False), (1, 1, True), (None, 1, True), (1, None, True)])
def test_another_transport_repeats_only_what_was_authorised_alike(
    one: int | None, other: int | None, *, repeated: bool
) -> None:
    clock = Clock()
    memory, cut = calls(clock), object()
    memory.left(*PAY, cut, credential=one)
    assert memory.repeats(*PAY, object(), began=clock.now + 1, credential=other) is repeated
    memory.left(*PAY, cut, credential=one)
    assert memory.repeats(*PAY, cut, began=clock.now - 1, credential=other), "its own token may have been renewed"

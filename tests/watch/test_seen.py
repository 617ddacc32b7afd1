from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_mcp_resume.rules.terms import DuplicateKind
from otel_mcp_resume.watch.seen import LONG_ID, EventMemory, SeenIds, short_key, shortened

REDELIVERED, COLLISION = DuplicateKind.REDELIVERED, DuplicateKind.COLLISION


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("a", "a", REDELIVERED),
        ("a", "b", COLLISION),
        (None, "a", None),
        ("", "a", None),
        ("a", None, None),
        ("a", "", None),
        (None, None, None),
    ],
)
def test_an_id_that_comes_again(first: str | None, second: str | None, kind: DuplicateKind | None) -> None:
    seen = SeenIds(EventMemory(10))
    assert seen.add("1", first) is None
    assert seen.add("1", second) is kind
    assert "1" in seen
    assert len(seen) == 1


def test_a_priming_event_lends_its_id_once() -> None:
    seen = SeenIds(EventMemory(10))
    seen.add("1", None)
    assert seen.add("1", "a") is None
    assert seen.add("1", "") is None
    assert seen.add("1", "a") is REDELIVERED
    assert seen.add("1", "b") is COLLISION


def test_streams_do_not_see_each_other() -> None:
    memory = EventMemory(10)
    one, other = SeenIds(memory), SeenIds(memory)
    one.add("1", "a")
    assert "1" not in other
    assert other.add("1", "b") is None
    assert memory.size == 2


def test_the_oldest_id_goes_first_whichever_stream_it_is_of() -> None:
    memory = EventMemory(3)
    one, other = SeenIds(memory), SeenIds(memory)
    one.add("1", "a")
    other.add("1", "a")
    one.add("2", "a")
    one.add("3", "a")
    assert ("1" in one, "2" in one, "3" in one, "1" in other) == (False, True, True, True)
    assert (memory.size, memory.evicted) == (3, 1)


@pytest.mark.parametrize("event_id", ["x" * LONG_ID, "x" * (LONG_ID + 1), "x" * 65_536, "é" * 65_536, "\0\x1f\u2028"])
def test_ids_of_any_length_are_known_again(event_id: str) -> None:
    seen = SeenIds(EventMemory(10))
    seen.add(event_id, "a")
    assert event_id in seen
    assert event_id + "x" not in seen
    assert seen.add(event_id, "b") is COLLISION
    assert len(str(short_key(event_id))) <= LONG_ID


def test_what_is_over_is_given_back() -> None:
    memory = EventMemory(10)
    seen = SeenIds(memory)
    seen.add("1", "a")
    seen.close()
    seen.close()
    assert memory.size == 0
    assert seen.add("2", "a") is None
    assert (memory.size, len(seen)) == (0, 0), "nobody would give it back"


@pytest.mark.parametrize("limit", [-1, 0, 1])
def test_the_smallest_memory_is_one(limit: int) -> None:
    memory = EventMemory(limit)
    seen = SeenIds(memory)
    for number in range(5):
        seen.add(str(number), "a")
    assert (len(seen), memory.size, memory.evicted) == (1, 1, 4)


def test_three_hundred_thousand_ids_of_any_length_take_no_more_than_the_limit() -> None:
    memory = EventMemory(500)
    seen = SeenIds(memory)
    tracemalloc.start()
    try:
        for number in range(300_000):
            seen.add(f"{'x' * (number % 200)}{number}", "data")
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert (memory.size, len(seen), memory.evicted) == (500, 500, 299_500)
    assert held < 1_000_000


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["add", "add", "add", "close"]), st.integers(0, 20)), max_size=200
    ),
    st.integers(1, 12),
)
def test_the_account_is_right_whatever_streams_do(steps: list[tuple[int, str, int]], limit: int) -> None:
    memory = EventMemory(limit)
    streams = [SeenIds(memory) for _ in range(4)]
    added = given_back = 0
    for index, action, number in steps:
        if action == "add":
            before = str(number) in streams[index]
            streams[index].add(str(number), "a")
            added += not before
        else:
            given_back += len(streams[index])
            streams[index].close()
            streams[index] = SeenIds(memory)
        assert memory.size == sum(map(len, streams)) <= limit
        assert added == memory.size + memory.evicted + given_back


def test_streams_that_come_and_go_leave_nothing_behind() -> None:
    memory = EventMemory(1000)
    stays = SeenIds(memory)
    stays.add("1", "a")
    for _ in range(5000):
        seen = SeenIds(memory)
        for number in range(5):
            seen.add(str(number), "a")
        seen.close()
    assert memory.size == 1
    assert len(memory._order) < 100


@pytest.mark.once
def test_an_id_costs_no_more_where_another_goes_for_it() -> None:
    """As the ratio of two halves of one run. A walk over what is gone makes it thirty times as much."""
    limit = 100_000
    seen, marks = SeenIds(EventMemory(limit)), [time.thread_time()]
    for half in range(2):
        for number in range(half * limit, (half + 1) * limit):
            seen.add(str(number), "a")
        marks.append(time.thread_time())
    assert marks[2] - marks[1] < 10 * (marks[1] - marks[0])
    assert len(seen) == limit


def test_places_of_what_is_gone_are_given_back() -> None:
    seen = SeenIds(EventMemory(100))
    for number in range(100_000):
        seen.add(str(number), "a")
    assert len(seen._keys) <= 400
    assert [str(number) in seen for number in (99_899, 99_900, 99_999)] == [False, True, True]


def test_of_a_long_id_the_front_and_a_hash_are_kept() -> None:
    one, other = ("x" * 100_000 + end for end in "12")
    assert shortened("x" * LONG_ID) == "x" * LONG_ID
    assert shortened(one) != shortened(other)
    assert shortened(one) == shortened("x" * 100_000 + "1")
    assert len(shortened(one)) < 2 * LONG_ID

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from otel_mcp_resume.watch.deadlines import Deadlines

LIMIT = 30.0
"""Seconds that a test waits for what happens at once."""


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


class Told:
    """The order in which items were told."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._changed = threading.Condition()

    def tell(self, name: str) -> None:
        with self._changed:
            self.names.append(name)
            self._changed.notify_all()

    def waits_until(self, holds: Callable[[], bool]) -> bool:
        with self._changed:
            return self._changed.wait_for(holds, LIMIT)

    def changed(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def waits_for(self, *names: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.names) >= len(names), LIMIT), self.names
            assert self.names == list(names)


@dataclass(eq=False)
class Item:
    name: str
    told: Told
    error: BaseException | None = None

    def expire(self) -> None:
        self.told.tell(self.name)
        if self.error is not None:
            raise self.error


@dataclass
class Queue:
    """Deadlines of 20 seconds on a clock that is set by hand."""

    clock: Clock = field(default_factory=Clock)
    told: Told = field(default_factory=Told)
    errors: list[tuple[str, Exception]] = field(default_factory=list[tuple[str, Exception]])

    def __post_init__(self) -> None:
        self.deadlines = Deadlines(20.0, self.fault, self.clock)

    def fault(self, hook: str, error: Exception) -> None:
        self.errors.append((hook, error))
        self.told.changed()

    def add(self, name: str, error: BaseException | None = None) -> Item:
        item = Item(name, self.told, error)
        self.deadlines.add(item)
        return item

    @property
    def has_thread(self) -> bool:
        return self.deadlines._thread is not None

    def at(self, now: float) -> None:
        """The clock goes on, and the thread looks at it."""
        self.clock.now = now
        with self.deadlines._changed:
            self.deadlines._changed.notify_all()


@pytest.fixture
def queue() -> Iterator[Queue]:
    made = Queue()
    yield made
    thread = made.deadlines._thread
    made.deadlines.close()
    if thread is not None:
        thread.join(LIMIT)
        assert not thread.is_alive()


def test_items_are_told_in_the_order_of_their_arrival_and_none_too_early(queue: Queue) -> None:
    queue.add("a")
    queue.clock.now = 1005.0
    queue.add("b")
    queue.at(1019.9)
    assert queue.told.names == []
    queue.at(1020.0)
    queue.told.waits_for("a")
    queue.at(1025.0)
    queue.told.waits_for("a", "b")


def test_what_has_settled_is_never_told(queue: Queue) -> None:
    first = queue.add("a")
    queue.add("b")
    queue.deadlines.forget(first)
    queue.deadlines.forget(first)
    queue.at(2000.0)
    queue.told.waits_for("b")
    queue.deadlines.forget(first)
    assert queue.told.names == ["b"]


def test_the_queue_holds_only_what_is_open(queue: Queue) -> None:
    for number in range(1000):
        queue.deadlines.forget(queue.add(str(number)))
    assert len(queue.deadlines._due) == 0
    queue.add("last")
    queue.at(1020.0)
    queue.told.waits_for("last")


def test_one_thread_serves_all_and_starts_with_the_first_item(queue: Queue) -> None:
    assert not queue.has_thread
    queue.add("a")
    thread = queue.deadlines._thread
    assert thread is not None
    assert thread.daemon
    queue.at(1020.0)
    queue.told.waits_for("a")
    queue.add("b")
    assert queue.deadlines._thread is thread
    queue.at(1040.0)
    queue.told.waits_for("a", "b")


@pytest.mark.parametrize("error", [ValueError("x"), RecursionError("x")])
def test_a_fault_of_one_is_reported_and_costs_the_others_nothing(queue: Queue, error: Exception) -> None:
    queue.add("a", error)
    queue.add("b")
    queue.at(1020.0)
    queue.told.waits_for("a", "b")
    assert queue.errors == [("deadlines", error)]


def test_the_real_clock_works_too() -> None:
    told = Told()
    deadlines = Deadlines(0.01, Queue().fault)
    deadlines.add(Item("a", told))
    told.waits_for("a")
    deadlines.close()


def test_after_the_end_nothing_is_kept_and_nothing_told(queue: Queue) -> None:
    queue.add("a")
    thread = queue.deadlines._thread
    assert thread is not None
    queue.deadlines.close()
    queue.add("b")
    queue.at(5000.0)
    thread.join(LIMIT)
    assert not thread.is_alive()
    assert queue.told.names == []
    assert len(queue.deadlines._due) == 0
    queue.deadlines.close()


def test_where_no_thread_can_be_had_the_next_item_tries_again(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as without_threads:
        without_threads.setattr(threading.Thread, "start", start)
        queue.add("a")
        assert [(hook, str(error)) for hook, error in queue.errors] == [("deadlines", "can't start new thread")]
    queue.add("b")
    queue.at(1020.0)
    queue.told.waits_for("a", "b")


def test_a_fault_of_the_queue_itself_is_reported_and_the_next_item_starts_anew(queue: Queue) -> None:
    def broken() -> float:
        raise ZeroDivisionError

    queue.add("a")
    queue.deadlines._clock = broken
    queue.at(1000.0)
    assert queue.told.waits_until(lambda: len(queue.errors) == 1)
    assert isinstance(queue.errors[0][1], ZeroDivisionError)
    queue.deadlines._clock = queue.clock
    queue.add("b")
    queue.at(1020.0)
    queue.told.waits_for("a", "b")


def test_a_condition_that_does_not_wait_takes_neither_the_lock_nor_the_time_of_others(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application's own loop takes that lock with every attempt."""
    monkeypatch.setattr(queue.deadlines._changed, "wait", lambda *_: object())
    queue.add("a")
    assert queue.told.waits_until(lambda: len(queue.errors) == 1)
    queue.deadlines.forget(queue.add("b"))
    assert queue.told.waits_until(lambda: len(queue.errors) == 2 and not queue.has_thread)
    monkeypatch.undo()
    queue.add("c")
    queue.at(1020.0)
    queue.told.waits_for("a", "c")


def test_a_forked_child_has_a_lock_a_thread_and_a_queue_of_its_own(queue: Queue) -> None:
    parents = queue.deadlines._changed
    queue.deadlines._due[0] = 1.0, Item("of the parent", queue.told)
    held = threading.Event()
    release = threading.Event()

    def hold() -> None:
        with parents:
            held.set()
            release.wait(LIMIT)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(LIMIT)
    queue.deadlines.after_fork()  # the lock is held by a thread that the child does not have
    queue.add("of the child")
    queue.at(1020.0)
    queue.told.waits_for("of the child")
    release.set()
    holder.join(LIMIT)
    assert queue.told.names == ["of the child"]


def test_many_threads_add_and_forget(queue: Queue) -> None:
    def work(start: int) -> None:
        for number in range(start, start + 200):
            item = queue.add(str(number))
            if number % 2:
                queue.deadlines.forget(item)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 800, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    queue.at(1020.0)
    with queue.told._changed:
        assert queue.told._changed.wait_for(lambda: len(queue.told.names) == 400, LIMIT)
    assert sorted(map(int, queue.told.names)) == list(range(0, 800, 2))

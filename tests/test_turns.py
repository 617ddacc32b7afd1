from __future__ import annotations

import threading

import pytest

from otel_mcp_resume.turns import Turns


def test_a_job_that_comes_while_one_runs_is_done_after_it_by_the_same_thread() -> None:
    turns, order = Turns(), list[str]()

    def outer() -> None:
        turns.run(lambda: order.append("inner"))
        order.append("outer")

    turns.run(outer)
    assert order == ["outer", "inner"]


def test_nobody_waits_for_a_job_of_another_thread() -> None:
    turns, started, end = Turns(), threading.Event(), threading.Event()
    done: list[threading.Thread] = []

    def slow() -> None:
        started.set()
        assert end.wait(30)

    worker = threading.Thread(target=turns.run, args=(slow,))
    worker.start()
    assert started.wait(30)
    turns.run(lambda: done.append(threading.current_thread()))
    assert done == []
    end.set()
    worker.join(30)
    assert done == [worker]


def test_each_job_of_many_threads_is_done_once_and_never_two_at_a_time() -> None:
    turns, ran, inside = Turns(), list[int](), list[int]()
    overlaps: list[int] = []

    def job(number: int) -> None:
        inside.append(number)
        overlaps.append(len(inside))
        ran.append(number)
        inside.remove(number)

    def work(base: int) -> None:
        for number in range(base, base + 200):
            turns.run(lambda number=number: job(number))  # type: ignore[misc] # binds the number now

    threads = [threading.Thread(target=work, args=(1000 * index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(ran) == sorted(1000 * index + number for index in range(8) for number in range(200))
    assert set(overlaps) == {1}


def test_a_job_that_is_interrupted_leaves_the_way_free() -> None:
    turns, done = Turns(), list[str]()

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        turns.run(interrupted)
    turns.run(lambda: done.append("next"))
    assert done == ["next"]


def test_after_a_fork_the_job_that_was_under_way_is_done_again() -> None:
    turns, started, end, count = Turns(), threading.Event(), threading.Event(), list[int]()

    def slow() -> None:
        count.append(1)
        started.set()
        assert end.wait(30)

    worker = threading.Thread(target=turns.run, args=(slow,))
    worker.start()
    assert started.wait(30)
    end.set()
    worker.join(30)
    forked = Turns()
    forked._current = slow  # as a child finds it, whose parent had a thread in the middle of `slow`
    forked.after_fork()
    assert count == [1, 1]
    forked.run(lambda: count.append(2))
    assert count == [1, 1, 2]

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from otel_mcp_resume.report.workers import Workers

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.name != "posix", reason="worker processes share an endpoint by a POSIX lock")

PATIENCE = 20.0


class Worker:
    """A `Workers` with what it did."""

    def __init__(self, directory: Path) -> None:
        self.serving = threading.Event()
        self.turns = threading.Semaphore(0)
        self.errors: list[tuple[str, Exception]] = []
        self.failure: Exception | None = None
        self.workers = Workers(
            str(directory), self._refresh, self.serving.set, lambda *error: self.errors.append(error), period=0.02
        )
        self.workers.start()

    def _refresh(self) -> None:
        self.turns.release()
        if self.failure is not None:
            raise self.failure

    def wait_for_turns(self, number: int) -> None:
        for _ in range(number):
            assert self.turns.acquire(timeout=PATIENCE)


def test_one_serves_and_another_takes_over_when_it_stops(tmp_path: Path) -> None:
    first = Worker(tmp_path)
    assert first.serving.wait(PATIENCE)
    second = Worker(tmp_path)
    second.wait_for_turns(3)
    assert not second.serving.is_set()
    first.workers.stop()
    assert second.serving.wait(PATIENCE)
    second.workers.stop()
    assert first.errors == second.errors == []


def test_different_directories_do_not_compete(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    workers = [Worker(tmp_path / "a"), Worker(tmp_path / "b")]
    for worker in workers:
        assert worker.serving.wait(PATIENCE)
        worker.workers.stop()


def test_a_failing_turn_is_reported_and_the_next_one_comes(tmp_path: Path) -> None:
    worker = Worker(tmp_path / "missing")
    worker.wait_for_turns(3)
    (tmp_path / "missing").mkdir()
    assert worker.serving.wait(PATIENCE)
    worker.failure = ZeroDivisionError()
    worker.wait_for_turns(3)
    worker.workers.stop()
    assert {hook for hook, _ in worker.errors} == {"exporter"}
    assert {type(error) for _, error in worker.errors} == {FileNotFoundError, ZeroDivisionError}


def test_stopping_ends_the_thread_twice_over(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    worker.workers.stop()
    worker.workers.stop()
    assert not worker.workers._thread.is_alive()

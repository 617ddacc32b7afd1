"""Jobs one at a time without anybody waiting.

Putting hooks in place may import modules, and the end of an import puts hooks in place: with a lock around either,
two threads that import could wait for each other for ever, and one thread for itself.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

__all__ = ["Turns"]

Job = Callable[[], None]


class Turns:
    """Runs jobs in the order of their arrival. Who comes while one runs leaves its own to that thread and goes on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held for a moment only, never while a job runs
        self._jobs: deque[Job] = deque()
        self._current: Job | None = None

    def run(self, job: Job) -> None:
        """Runs `job`, now or, if another one is running, right after it. A job should not raise."""
        with self._lock:
            self._jobs.append(job)
            if self._current is not None:
                return
            self._current = self._jobs.popleft()
        self._work()

    def after_fork(self) -> None:
        """In a forked child: who was at work stayed with the parent, its job maybe half done. Does it again."""
        self._lock = threading.Lock()
        if self._current is not None:
            self._work()

    def _work(self) -> None:
        try:
            while self._current is not None:
                self._current()
                self._advance()
        except BaseException:
            self._advance()
            raise

    def _advance(self) -> None:
        with self._lock:
            self._current = self._jobs.popleft() if self._jobs else None

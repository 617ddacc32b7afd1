"""Time limits without a task in anybody's event loop: one daemon thread over one queue.

The limit is the same for every item, so the order of arrival is the order of expiry and an ordered
dictionary is the queue. Items that settle earlier leave it at once, so it holds only what is open.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

__all__ = ["Deadlines", "Expirable"]


class Expirable(Protocol):
    """Something that is told when its time is up."""

    def expire(self) -> None:
        """Called at most once, from the deadline thread, unless it was forgotten before."""


class Deadlines:
    """Tells every item that it was given, `seconds` later, that its time is up."""

    def __init__(
        self,
        seconds: float,
        on_error: Callable[[str, Exception], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`on_error(hook, error)` learns what an item's `expire` raised. It must not raise itself."""
        self.seconds = seconds
        self._on_error = on_error
        self._clock = clock
        self._restart()

    def _restart(self) -> None:
        self._due: OrderedDict[int, tuple[float, Expirable]] = OrderedDict()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._is_idle = False
        """Whether the thread waits for any item at all. If it waits for a time, that comes before any later item's, be
        its own item there still or not, so nobody wakes it: that would cost each attempt a switch of threads."""

    def after_fork(self) -> None:
        """In a forked child the thread is gone, the lock may be held by nobody, and the items are the parent's."""
        self._restart()

    def add(self, item: Expirable) -> None:
        """Starts the time of `item`. Never blocks on an item that is being told."""
        with self._changed:
            if self._closed:
                return
            self._due[id(item)] = (self._clock() + self.seconds, item)
            if self._thread is not None:
                if self._is_idle:
                    self._changed.notify()
                return
            thread = threading.Thread(target=self._work, name="otel-mcp-resume-deadlines", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # no thread can be had at present; the next item tries again
                failed = error
            else:
                self._thread = thread
                return
        self._on_error("deadlines", failed)

    def forget(self, item: Expirable) -> None:
        """`item` has settled. Harmless if it was never added or is already past."""
        with self._changed:
            self._due.pop(id(item), None)

    def close(self) -> None:
        """Ends the thread. What is still open is never told."""
        with self._changed:
            self._closed = True
            self._due.clear()
            self._changed.notify()

    def _work(self) -> None:
        try:
            self._run()
        except Exception as error:  # noqa: BLE001 - nobody looks at what a thread raises; the next item starts another
            self._thread = None
            self._on_error("deadlines", error)

    def _run(self) -> None:
        while not self._closed:
            item = self._next()
            if item is None:
                continue
            try:
                item.expire()
            except Exception as error:  # noqa: BLE001 - one item must not end the time of all others
                self._on_error("deadlines", error)

    def _next(self) -> Expirable | None:
        """The next item, if it is due; or else waits for that or a change, once: the lock is given up between two."""
        with self._changed:
            if self._closed:
                return None
            if not self._due:
                self._is_idle = True
                self._wait(None)
                self._is_idle = False
                return None
            key, (due, item) = next(iter(self._due.items()))
            left = due - self._clock()
            if left <= 0:
                del self._due[key]
                return item
            self._wait(left)
            return None

    def _wait(self, seconds: float | None) -> None:
        if self._changed.wait(seconds) not in (True, False):
            # Round and round without a pause, this thread would take all others their time.
            raise RuntimeError("a condition did not wait")

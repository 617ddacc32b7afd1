"""Where faults of our own end: counted every time, written down at most once a minute."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING

from otel_mcp_resume.report.fields import PLUGIN_LOGGER

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Errors"]

_PERIOD = 60.0
"""Seconds between two records."""


class Errors:
    """An `ErrorSink`: call it with the name of the hook and what was raised inside it. It never raises."""

    def __init__(self, count: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        """`count(hook)` counts the fault. `clock` gives monotonic seconds."""
        self._count = count
        self._clock = clock
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._next = float("-inf")
        self._silent = 0

    def after_fork(self) -> None:
        """In a forked child: the lock may be held by nobody, and the minute is the parent's."""
        self._start()

    def __call__(self, hook: str, error: Exception) -> None:
        """Counts `error` under `hook`, and logs it with its stack if none was logged within the last minute."""
        try:
            self._count(hook)
        except Exception as second:  # noqa: BLE001 - a fault while counting a fault: the record below is all that is left
            error.__context__ = error.__context__ or second
        with contextlib.suppress(Exception):  # the application's logging runs in there, and there is nothing after it
            self._write(hook, error)

    def _write(self, hook: str, error: Exception) -> None:
        now = self._clock()
        with self._lock:
            if now < self._next:
                self._silent += 1
                return
            self._next = now + _PERIOD
            silent, self._silent = self._silent, 0
        logging.getLogger(PLUGIN_LOGGER).error(
            "otel-mcp-resume failed in %s and went on; the application is not affected (%d more since the last record)",
            hook,
            silent,
            exc_info=(type(error), error, error.__traceback__),
        )

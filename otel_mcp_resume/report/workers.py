"""Worker processes that share files share one endpoint, too: the first one serves; when it ends, another takes over.

Whoever holds the lock on a file in the shared directory serves. The system frees the lock of a process that
ends, however it ends.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Callable

    from otel_mcp_resume.sdk.guard import ErrorSink

__all__ = ["Workers"]

_LOCK = "otel_mcp_resume.lock"


class Workers:
    """One daemon thread that brings this process's ages up to date, and serves when it is its turn."""

    def __init__(
        self,
        directory: str,
        refresh: Callable[[], None],
        serve: Callable[[], None],
        on_error: ErrorSink,
        period: float = 2.0,
    ) -> None:
        """`refresh` is called every `period` seconds, `serve` at most once. Faults go to `on_error`."""
        self._directory = directory
        self._refresh = refresh
        self._serve = serve
        self._on_error = on_error
        self._period = period
        self._stopped = threading.Event()
        self._lock: int | None = None
        self._serves = False
        self._thread = threading.Thread(target=self._run, name="otel-mcp-resume-workers", daemon=True)

    def start(self) -> None:
        """Begins. To be called once."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread and lets another process serve."""
        self._stopped.set()
        if self._thread is not threading.current_thread():
            self._thread.join(self._period)
        self._let_go()

    def after_fork(self) -> None:
        """In a forked child: closes its copy of the lock file, so that the lock ends with the parent."""
        self._let_go()

    def _let_go(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            with suppress(OSError):
                os.close(lock)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._turn()
            except Exception as error:  # noqa: BLE001 - the next turn may go better
                self._on_error("exporter", error)
            self._stopped.wait(self._period)

    def _turn(self) -> None:
        self._refresh()
        if not self._serves and self._is_ours():
            self._serves = True
            self._serve()

    def _is_ours(self) -> bool:
        if sys.platform == "win32":  # no such lock there: every worker looks for a port of its own
            return True
        if self._lock is None:
            self._lock = os.open(Path(self._directory) / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

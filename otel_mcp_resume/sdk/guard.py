"""The wall between our bookkeeping and the application: what breaks inside is counted and swallowed.

Only our own functions are ever guarded, never a call of the user's. `BaseException` (cancellation,
`KeyboardInterrupt`, `GeneratorExit`) passes untouched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from typing_extensions import ParamSpec

__all__ = ["ErrorSink", "Guard"]

P = ParamSpec("P")
T = TypeVar("T")

ErrorSink = Callable[[str, Exception], None]
"""Takes the name of the hook and what was raised inside it. Must not raise."""


class Guard:
    """Makes functions of ours that the application's call path can call without harm."""

    def __init__(self, on_error: ErrorSink) -> None:
        self._on_error = on_error
        self._sinks: dict[str, Callable[[Exception], None]] = {}

    def __call__(self, hook: str, function: Callable[P, T]) -> Callable[P, T | None]:
        """`function`, but any `Exception` in it is reported under `hook` and answered with None."""

        # No `functools.wraps`: some are made for every connection, and a name of their own weighs more than they do.
        def guarded(*args: P.args, **kwargs: P.kwargs) -> T | None:
            try:
                return function(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - the whole point: nothing of ours may reach the application
                self._report(hook, error)
                return None

        return guarded

    def fail(self, hook: str) -> Callable[[Exception], None]:
        """Takes what was raised under `hook` and caught on the spot, where a wrapper would cost too much."""
        sink = self._sinks.get(hook)
        if sink is None:
            sink = self._sinks[hook] = partial(self._report, hook)
        return sink

    def _report(self, hook: str, error: Exception) -> None:
        with contextlib.suppress(Exception):  # the last resort has nowhere left to report to
            self._on_error(hook, error)

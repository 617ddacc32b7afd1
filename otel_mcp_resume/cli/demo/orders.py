"""How the demo and its processes speak with each other.

A process says what happens, one JSON object a line on its standard output, and hears orders, one a line on its
standard input, which ends when the demo does.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, cast

__all__ = ["follow", "say", "understood"]

GRACE = 4
"""Seconds that a process has to end by itself."""


def say(event: str, **details: Any) -> None:
    """Tells the demo something: one JSON object a line."""
    print(json.dumps({"event": event, **details}), flush=True)


def understood(line: bytes) -> dict[str, Any] | None:
    """What a process said with this line, or None if it is not one of ours."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return cast("dict[str, Any]", message) if isinstance(message, dict) and "event" in message else None


def follow(on_line: Callable[[str], None], on_end: Callable[[], None]) -> None:
    """Calls back, from a thread of its own, for every line, and once at the end.

    The end comes however the demo ended, killed included, so that no process outlives it.
    """

    def run() -> None:
        for line in sys.stdin:
            on_line(line.strip())
        on_end()
        time.sleep(GRACE)
        os._exit(1)

    threading.Thread(target=run, name="orders", daemon=True).start()

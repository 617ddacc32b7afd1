"""How the processes of the demo hear from it: lines on their standard input, which ends when the demo does."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

__all__ = ["follow", "say"]

GRACE = 4
"""Seconds that a process has to end by itself."""


def say(event: str, **details: Any) -> None:
    """Tells the demo something: one JSON object a line."""
    print(json.dumps({"event": event, **details}), flush=True)


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

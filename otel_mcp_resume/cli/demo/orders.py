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

__all__ = ["Orders", "say", "understood"]

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


class Orders:
    """Listens, in a thread of its own, from its creation on.

    The end comes however the demo ended, killed included, and wherever the process is by then, so that none
    outlives the demo.
    """

    def __init__(self) -> None:
        self.on_line: Callable[[str], object] = lambda _: None
        """Called in that thread for every order."""
        self.on_end: Callable[[], object] = lambda: None
        """Called in that thread once, when there is nobody left to obey. The process has `GRACE` to end after it."""
        threading.Thread(target=self._listen, name="orders", daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self.on_line(line.strip())
        self.on_end()
        time.sleep(GRACE)
        os._exit(1)

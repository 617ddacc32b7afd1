"""What the runner and the instrumented process have in common."""

from __future__ import annotations

import importlib.metadata
import json
from typing import Any

__all__ = ["HOST", "Json", "one_entry", "say", "sdk_is_modern"]

HOST = "127.0.0.1"

Json = dict[str, Any]


def one_entry(step: str | Json) -> tuple[str, Any]:
    """A step is a bare word, or a mapping whose first key names the action."""
    if isinstance(step, str):
        return step, {}
    action, argument = next(iter(step.items()))
    return action, argument


def say(**message: Any) -> None:
    """Tells the runner something, as a line on stdout."""
    print(json.dumps(message), flush=True)


def sdk_is_modern() -> bool:
    """Whether the SDK is of the 2.x line."""
    return not importlib.metadata.version("mcp").startswith("1.")

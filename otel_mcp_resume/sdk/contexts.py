"""Context variables of ours that are set around a call of the SDK's, and put back after it."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any

__all__ = ["put_back"]


def put_back(variable: ContextVar[Any], token: Token[Any]) -> None:
    """Resets `variable`, if this is still where it was set. Raises nothing.

    A coroutine that nobody goes on with is closed by whoever drops it, or by the garbage collector, in any context:
    there is nothing to put back there, and the application would see the complaint.
    """
    try:  # noqa: SIM105 - in the way of every request, and `suppress` is ten times as slow
        variable.reset(token)
    except Exception:  # noqa: BLE001, S110 - `ValueError`, and this stands where nothing of ours is around it
        pass

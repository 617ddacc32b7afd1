"""Tool calls that were left without an answer, so that the same call again can be told from a deliberate one.

Neither tools nor arguments are kept: only their hash, under the interpreter's random key.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

__all__ = ["UnansweredCalls"]

WINDOW = 300.0
"""Seconds after which the same call again is taken for a new one."""
LIMIT = 4096
"""Calls, and tools, that are remembered."""


class UnansweredCalls:
    """Calls that may have run although nobody learned their result."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._left: OrderedDict[tuple[int, object], tuple[float, int | None]] = OrderedDict()
        """When each was left, and with which credential. Many clients may have made the same call: each transport is
        remembered once."""
        self._owners: dict[int, list[object]] = {}
        """The transports that left each call, the oldest first."""
        self._harmless: OrderedDict[int, None] = OrderedDict()

    @property
    def are_known(self) -> bool:
        """Whether any call was left, so that it matters who makes one."""
        return bool(self._left)

    def left(
        self, peer: str, tool: str, arguments: Any, owner: object = None, *, credential: int | None = None
    ) -> None:
        """A call to `peer` ended without an answer. `owner` is the transport that it was made over.

        `credential` stands for what its requests are authorised with, None for what is not known.
        """
        with self._lock:
            if hash((peer, tool)) in self._harmless:
                return
            key = _digest(peer, tool, arguments)
            if (key, owner) in self._left:
                self._forget(key, owner)
            self._left[key, owner] = self._clock(), credential
            self._owners.setdefault(key, []).append(owner)
            if len(self._left) > LIMIT:
                self._forget(*next(iter(self._left)))

    def answered(self, peer: str, tool: str, arguments: Any, owner: object = None) -> None:
        """The answer to a call that was left has come after all."""
        key = _digest(peer, tool, arguments)
        with self._lock:
            if (key, owner) in self._left:
                self._forget(key, owner)

    def repeats(
        self,
        peer: str,
        tool: str,
        arguments: Any,
        owner: object = None,
        *,
        began: float = float("inf"),
        credential: int | None = None,
    ) -> bool:
        """Whether a call repeats one that was left; each is repeated once.

        A gateway has many transports: another one that was there before (`began`), or that is authorised otherwise,
        makes calls of its own.
        """
        if not self._left:  # nearly always, and then no argument is looked at
            return False
        with self._lock:
            key, now = _digest(peer, tool, arguments), self._clock()
            owners = self._owners.get(key, [])
            for whose in sorted(owners, key=lambda whose: whose is not owner):  # one's own goes first
                when, known = self._left[key, whose]
                is_other = None not in (known, credential) and known != credential
                if whose is not owner and (began < when or is_other):
                    continue
                self._forget(key, whose)
                if now - when <= WINDOW:
                    return True
            return False

    def _forget(self, key: int, owner: object) -> None:
        """Holds the lock."""
        del self._left[key, owner]
        owners = self._owners[key]
        owners.remove(owner)
        if not owners:
            del self._owners[key]

    def tools_listed(self, peer: str, data: str) -> None:
        """Learns from a `tools/list` response which tools do no harm when called twice (`ToolAnnotations`)."""
        try:
            tools: Any = json.loads(data)["result"]["tools"]
            hints = [(str(tool["name"]), _harmless(tool.get("annotations") or {})) for tool in tools]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return
        with self._lock:
            for name, harmless in hints:
                key = hash((peer, name))
                self._harmless.pop(key, None)
                if harmless:
                    self._harmless[key] = None
            while len(self._harmless) > LIMIT:
                self._harmless.popitem(last=False)


def _harmless(annotations: Any) -> bool:
    return annotations.get("idempotentHint") is True or annotations.get("readOnlyHint") is True


def _digest(peer: str, tool: str, arguments: Any) -> int:
    try:
        text = json.dumps(arguments, sort_keys=True, default=str)
    except (TypeError, ValueError):  # keys that have no order, or an argument within itself
        text = repr(arguments)
    return hash((peer, tool, text))

"""What a client has asked over HTTP+SSE: a POST is only taken, the answer comes on the stream of the session."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from otel_mcp_resume.watch.calls import member
from otel_mcp_resume.watch.jsonrpc import id_text

__all__ = ["Asked", "ToolCall"]

ToolCall = tuple[str, Any]
"""Tool and arguments."""

LIMIT = 256
"""Requests of one session without an answer. An application may give up waiting and say nothing: the oldest goes."""

LARGEST = 32_768
"""Bytes of a message of which the arguments are remembered. What a larger call left undone is not noticed."""

_WATCHED = (b'"tools/call"', b'"tools/list"', b'"notifications/cancelled"')
"""No other message is parsed."""


class Asked:
    """The requests of one session that have no answer yet. Posts are made one after the other."""

    __slots__ = ("_failed", "_latest", "_open")

    def __init__(self) -> None:
        self._failed: tuple[str, ToolCall] | None = None
        self._latest: str | None = None
        self._open: OrderedDict[str, ToolCall | None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def posting(self, body: bytes) -> ToolCall | None:
        """A message is about to be posted. The call that it is. Raises `ValueError` if it is no JSON."""
        self._latest = None
        if not any(name in body for name in _WATCHED):
            return None
        message = json.loads(body)
        method, params, request_id = member(message, "method"), member(message, "params"), member(message, "id")
        if method == "notifications/cancelled":  # nobody waits for it any more
            self._open.pop(_key(id_text(member(params, "requestId"))), None)
        if request_id is None or method not in ("tools/call", "tools/list"):
            return None
        call = (str(member(params, "name")), member(params, "arguments")) if method == "tools/call" else None
        if len(body) > LARGEST:
            return call
        if call is not None:
            self._give_up(call)
        self._latest = _key(id_text(request_id))
        self._open[self._latest] = call
        if len(self._open) > LIMIT:
            self._open.popitem(last=False)
        return call

    def _give_up(self, call: ToolCall) -> None:
        """A call is made again while the stream is open: the one before was given up, which is said nowhere.

        If that stayed, the stream's end would leave a call whose repetition was answered long ago.
        """
        for request_id in [key for key, known in self._open.items() if known == call]:
            del self._open[request_id]

    def refused(self) -> None:
        """The latest post was answered with a 4xx, or never sent, so nothing of it was done."""
        if self._latest is not None:
            self._open.pop(self._latest, None)

    def failed(self) -> bool:
        """The latest post got no answer of its own. Whether its result had not come before, on the stream.

        That may still bring it. The SDK posts no more after that.
        """
        call = None if self._latest is None else self._open.pop(self._latest, None)
        if self._latest is None or call is None:
            return False
        self._failed = self._latest, call
        return True

    def answered(self, request_id: str) -> bool:
        """A response is here. Whether it lists tools."""
        return self._open.pop(_key(request_id), ()) is None

    def answered_after_all(self, request_id: str) -> ToolCall | None:
        """The call of a post that failed, if this is its response."""
        if self._failed is None or self._failed[0] != _key(request_id):
            return None
        call, self._failed = self._failed[1], None
        return call

    def left(self) -> Sequence[ToolCall]:
        """The stream is gone, and with it the answers to these calls."""
        calls = [call for call in self._open.values() if call is not None]
        self._open.clear()
        return calls


def _key(request_id: str) -> str:
    """`1` and `"1"` are the same: there are servers that answer a number with its text, and the SDK takes it."""
    return request_id.strip('"')

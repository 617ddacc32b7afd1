"""Tool calls as a server executes them: which one is the repetition of a call whose answer was lost.

Neither tools nor arguments are kept, but a digest under a key that no other process has.
"""

from __future__ import annotations

import json
import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, cast

from otel_mcp_resume.watch.subjects import Answer

if TYPE_CHECKING:
    from otel_mcp_resume.watch.facts import Fact
    from otel_mcp_resume.watch.server_connection import ServerConnection

__all__ = ["Call", "CallBook", "Tools", "member"]

WINDOW = 300.0
"""Seconds after a cut in which the same call is taken for a repetition."""
_as_text = json.JSONEncoder(sort_keys=True, default=str).encode  # made once: `json.dumps` would make it for each call
LIMIT = 10_000
"""Unanswered calls, and harmless tools of one application, that are remembered."""


def member(value: Any, name: str) -> Any:
    """A member of a JSON object; None also if `value` is no object."""
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None


class Tools:
    """The tools of one application that do no harm when they are called twice."""

    __slots__ = ("_harmless",)

    def __init__(self) -> None:
        self._harmless: OrderedDict[str, None] = OrderedDict()

    def learn(self, result: Any) -> None:
        """Reads the `ToolAnnotations` of a `tools/list` result, as the SDK has validated it."""
        for tool in member(result, "tools") or ():
            name = member(tool, "name")
            if not isinstance(name, str):
                continue
            hints = member(tool, "annotations")
            self._harmless.pop(name, None)
            if member(hints, "idempotentHint") is True or member(hints, "readOnlyHint") is True:
                self._harmless[name] = None
        while len(self._harmless) > LIMIT:
            self._harmless.popitem(last=False)

    def are_harmless(self, name: str) -> bool:
        """Whether calling `name` twice is as good as once."""
        return name in self._harmless


class Call(Answer):
    """One call in progress; the subject of its response."""

    __slots__ = ("_book", "is_answered", "key", "owner")

    def __init__(self, book: CallBook, key: bytes, owner: object) -> None:
        self._book = book
        self.key = key
        """Who called what: the digest of the client, the tool and the arguments."""
        self.owner = owner
        """The session that it came in."""
        self.is_answered = False

    def written(self, exchange: ServerConnection) -> Sequence[Fact]:
        """The answer left."""
        self.settle()
        exchange.is_answered = True
        return ()

    def settle(self) -> None:
        """It has its answer, or nobody wants one any more."""
        self.is_answered = True
        self._book.answered(self)


class CallBook:
    """The calls of the process that were cut before their answer. Not thread-safe: the watch holds its lock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._left: OrderedDict[bytes, tuple[float, Call]] = OrderedDict()

    def call(self, peer: Sequence[str], client_name: str, tool: str, arguments: Any, owner: object = None) -> Call:
        """A call comes in from a client that calls itself `client_name`, in the session `owner`.

        `peer` is what tells the client from others. No credential is kept.
        """
        text = _as_text((peer, client_name, tool, arguments))
        return Call(self, blake2b(text.encode(), key=self._secret, digest_size=16).digest(), owner)

    def repeats(self, call: Call, began: float) -> bool:
        """Whether an unanswered call of the same client comes again. Each is repeated once.

        `began` is when the session of `call` did. One that was there before the cut is another client's, who only looks
        the same: replicas behind one address make the same calls.
        """
        if not self._left:  # nearly always
            return False
        self._expire()
        left = self._left.get(call.key)
        if left is None or (left[1].owner is not call.owner and began < left[0]):
            return False
        del self._left[call.key]
        return True

    def cut(self, call: Call) -> None:
        """The connection of a call ended before its answer was written."""
        if call.is_answered:
            return
        self._left[call.key] = self._clock(), call
        self._left.move_to_end(call.key)
        if len(self._left) > LIMIT:
            self._left.popitem(last=False)

    def answered(self, call: Call) -> None:
        """A call that was cut got its answer after all."""
        left = self._left.get(call.key)
        if left is not None and left[1] is call:
            del self._left[call.key]

    def _expire(self) -> None:
        before = self._clock() - WINDOW
        while self._left:
            key, (when, _) = next(iter(self._left.items()))
            if when >= before:
                return
            del self._left[key]

"""What hostile peers send: the bytes of the wire cases, cut up, doubled and bent, and values that nobody expects."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from tests.wire.cases import CASES, find_cases
from tests.wire.frames import frame_text

__all__ = ["CONTENT", "NAME", "Corpus", "without_content_in_ids"]

CONTENT = "content-that-nobody-may-keep"
"""In every payload: neither a number, nor a span, nor a record may show it."""
NAME = "name-of-a-peer"
"""In ids of every kind: only spans and records may show it."""

_PIECES = (
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "\0",
    ":",
    " ",
    "data: ",
    "id: ",
    "event: endpoint\n",
    "retry: 1\n",
    "\ufeff",
    "\u2028",
)
_NUMBERS = ("0", "-1", "007", "9" * 40, "1e9", "٣", "5.5", "-", "")
_VALUES: tuple[Any, ...] = (None, True, 0, -1, 1e308, "", [], {}, [[]], {"a": {}}, "\ud800", "x" * 5000)
_METHODS = ("initialize", "tools/call", "tools/list", "subscriptions/listen", "notifications/cancelled", "no/such", "")


_ID_LINE = re.compile(rb"(?:^|(?<=[\r\n\xbf]))id[^\r\n]*")


def without_content_in_ids(body: bytes) -> bytes:
    """Where a line end is spoiled the payload becomes a part of the id, and ids are shown: the peer has said so."""
    return _ID_LINE.sub(lambda line: line[0].replace(CONTENT.encode(), b"content"), body)


class _Speaker:
    """Fills in what a frame of a case leaves to its play."""

    def answer(self) -> dict[str, Any]:
        return {"id": 1, "result": {"content": [{"type": "text", "text": CONTENT}]}}

    def filled(self, value: Any) -> Any:
        return value


class Corpus:
    """Seeds from all cases, and ways to spoil them. The same seed gives the same inputs."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.frames, self.tokens = _seeds()
        self._spoilers: tuple[Callable[[str], str], ...] = (
            self._cut,
            self._insert,
            self._double,
            self._flip,
            self._glue,
            str,
            str,
        )

    # -- text ------------------------------------------------------------------------------------

    def name(self) -> str:
        """An id of a session, an event or a request."""
        pick = self.random
        base = pick.choice(
            (*_NUMBERS, *pick.sample(self.tokens, 3), f"{NAME}-{pick.randrange(50)}", str(pick.randrange(30)))
        )
        if pick.random() < 0.3:  # by what brings no payload in
            base = pick.choice((self._cut, self._insert, self._double, self._flip))(base)
        return base

    def stream(self) -> str:
        """The body of an event stream."""
        return "".join(self._spoil(self._block()) for _ in range(self.random.randrange(6)))

    def _block(self) -> str:
        if self.random.random() < 0.4:
            return self.random.choice(self.frames)
        fields = [
            f"id: {self.name()}",
            f"data: {self.message()}",
            f"event: {self.random.choice(('message', 'endpoint', 'x'))}",
        ]
        return "\n".join(self.random.sample(fields, self.random.randrange(1, 4))) + "\n\n"

    def message(self) -> str:
        """A JSON-RPC message, or what looks like one."""
        pick = self.random
        members: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": pick.choice((1, "1", 2, None, self.name(), pick.choice(_VALUES))),
            "method": pick.choice((*_METHODS, pick.choice(_VALUES))),
            "params": {"name": f"{NAME}-tool", "arguments": {"a": CONTENT}, "requestId": self.name(), "data": CONTENT},
            "result": {"content": [{"type": "text", "text": CONTENT}], "tools": pick.choice(_VALUES)},
            "error": {"code": -1, "message": CONTENT},
        }
        for _ in range(pick.randrange(3)):
            members[pick.choice(list(members))] = pick.choice(_VALUES)
        names = pick.sample(list(members), pick.randrange(1, len(members) + 1))
        text = json.dumps({name: members[name] for name in names})
        return self._spoil(text) if pick.random() < 0.3 else text

    # -- heads -----------------------------------------------------------------------------------

    def headers(self, *names: str) -> list[tuple[bytes, bytes]]:
        """Some of these headers, some twice, in any case."""
        pick = self.random
        found: list[tuple[bytes, bytes]] = []
        for name in names:
            for _ in range(pick.choice((0, 1, 1, 1, 2))):
                spelled = pick.choice((name, name.upper(), name.title()))
                value = "".join(c for c in self.name() if c not in "\r\n\0").encode("utf-8", "replace")
                found.append((spelled.encode(), value))
        return found

    # -- spoiling --------------------------------------------------------------------------------

    def _spoil(self, text: str) -> str:
        for _ in range(self.random.randrange(3)):
            text = self.random.choice(self._spoilers)(text)
        return text

    def _at(self, text: str) -> int:
        return self.random.randrange(len(text) + 1)

    def _cut(self, text: str) -> str:
        return text[: self._at(text)]

    def _insert(self, text: str) -> str:
        at = self._at(text)
        return text[:at] + self.random.choice(_PIECES) + text[at:]

    def _double(self, text: str) -> str:
        at = self._at(text)
        return (
            text[:at] + text[at : at + 20] * self.random.choice((2, 3, 50)) + text[at:] if len(text) < 20_000 else text
        )

    def _flip(self, text: str) -> str:
        at = self._at(text)
        return text[:at] + chr(self.random.choice((*range(32), 127, 233, 8232, 0xFFFD, 0x1F600))) + text[at + 1 :]

    def _glue(self, text: str) -> str:
        return text + self.random.choice(self.frames)


@functools.cache
def _seeds() -> tuple[list[str], list[str]]:
    """Frames and tokens of all cases: seconds of reading, so once."""
    frames: set[str] = set()
    tokens: set[str] = set()
    for case in find_cases([CASES]):
        for key, value in _members(case.body):
            if key == "sse":
                frames |= {frame_text(_Speaker(), frame) for frame in value or () if "sleep" not in frame}
            elif key in ("token", "id") and isinstance(value, (str, int)):
                tokens.add(str(value))
    return sorted(frame for frame in frames if len(frame) < 5000), sorted(t for t in tokens if len(t) < 5000)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key), inner
            yield from _members(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _members(inner)

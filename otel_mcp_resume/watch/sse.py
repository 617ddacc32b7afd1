"""What was really on the wire of an event stream, block by block.

Parsers of the SDKs keep the last id when an event has none, and `httpx_sse` makes events of comments. This
one reports the fields of each block and nothing else. Lines end at CR LF, LF or CR only (WHATWG HTML, "Server-sent
events"): `str.splitlines` would also split at U+2028 inside a message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Block", "SseScanner"]

MAX_PENDING = 4 * 1024 * 1024
"""Characters of one unfinished block that are kept. Of a longer one the front is judged, and the rest is skipped."""


class Block(NamedTuple):
    """The fields of one block; a heartbeat (comment, `retry:` or `event:` alone) has neither id nor data."""

    event_id: str | None
    data: str | None
    event: str | None


_HEARTBEAT = Block(None, None, None)

_MESSAGE = "event: message\r\n"
_WHOLE = re.compile(
    r"(?:id: ?([^\r\n\0]*)\r?\n)?(?:event: ?([^\r\n]*)\r?\n)?(?:id: ?([^\r\n\0]*)\r?\n)?data: ?([^\r\n]*)\r?\n\r?\n"
)
"""One event as the Python and TypeScript SDKs write it. Whatever else there is goes the longer way."""


class SseScanner:
    """Takes decoded text as it arrives, in any pieces, and gives the blocks that became complete."""

    __slots__ = ("_ends_line", "_parts", "_pending", "_skipped", "_swallow")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._pending = 0
        self._ends_line = False
        self._skipped = False
        self._swallow = "\ufeff"
        """No part of the text if it comes next: a byte order mark at first, the second half of a CR LF later."""

    def message(self, text: str) -> tuple[str | None, str] | None:
        """The id and the data, if `text` is one whole message as the Python SDK writes it; or else it is for `feed`.

        Nearly every piece is one, and this costs a fifth of the long way.
        """
        if self._parts or self._swallow:
            return None
        head, _, data = text.partition("data: ")
        end = len(data) - 4
        if end <= 0 or data.find("\n") != end + 1 or data.find("\r") != end or data[end:] != "\r\n\r\n":
            return None
        if head == _MESSAGE:
            return None, data[:end]
        if head[:4] == "id: ":
            event_id, _, rest = head[4:].partition("\r\n")
            if rest == _MESSAGE and event_id.isprintable():  # so there is no end of a line in it, and no NUL
                return event_id, data[:end]
        return None

    def feed(self, text: str) -> Sequence[Block]:
        """The blocks that `text` completes, in order."""
        if self._swallow and text:
            text = text.removeprefix(self._swallow)
            self._swallow = ""
        match = None if self._parts else _WHOLE.fullmatch(text)
        if match is not None:  # nearly always: one piece is one event of one data line
            first, event, second, data = match.groups()
            return (Block(first if second is None else second, data, event),)
        if "\r" in text:
            self._swallow = "\n" if text[-1] == "\r" else ""
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        if self._parts:
            if "\n\n" not in text and not (self._ends_line and text[:1] == "\n"):
                self._keep(text)
                return ()
            text = self._taken() + text
        *whole, rest = text.split("\n\n")
        if rest:
            self._keep(rest)
        return [_block(block) for block in whole if block.strip("\n")]

    def _keep(self, text: str) -> None:
        if not text:
            return
        self._ends_line = text[-1] == "\n"
        if self._pending < MAX_PENDING:
            self._parts.append(text)
            self._pending += len(text)
        else:
            self._skipped = True

    def _taken(self) -> str:
        if self._skipped:  # what comes next goes on a line whose beginning is missing, or begins a new one
            self._parts.append("" if self._parts[-1][-1] == "\n" else "\n")
            self._parts.append("" if self._ends_line else ":")
        kept = "".join(self._parts)
        self._parts.clear()
        self._pending = 0
        self._skipped = False
        return kept


def _block(block: str) -> Block:
    event_id = data = event = None
    more: list[str] = []  # joined once: a peer may send an event of half a million lines
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        if name == "data":
            value = value[1:] if value[:1] == " " else value
            if data is None:
                data = value
            else:
                more.append(value)
        elif name == "id":
            if "\0" not in value:
                event_id = value[1:] if value[:1] == " " else value
        elif name == "event":
            event = value[1:] if value[:1] == " " else value
    if event_id is None and data is None:
        return _HEARTBEAT
    if more and data is not None:
        data = "\n".join((data, *more))
    return Block(event_id, data, event)

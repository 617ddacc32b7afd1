"""What passed through a gate, read off the bytes: who asked for what, and what was answered.

For the demo's own account and for `--verbose`. The verdicts come from the plugin and know nothing of this.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Exchange", "Wire", "short"]

_REQUEST = re.compile(rb"(GET|POST|DELETE) \S+ HTTP/1\.1\r\n")
_RESPONSE = re.compile(rb"HTTP/1\.1 (\d{3})")
_HEADER = re.compile(rb"(?im)^(mcp-session-id|last-event-id):[ \t]*([^\r\n]*)")
_RPC_METHOD = re.compile(rb'"method": ?"([^"]+)"')
_EVENT_ID = re.compile(rb"(?m)^id: ?([^\r\n]*)")


@dataclass(slots=True)
class Exchange:
    """One request and what came back."""

    method: str
    session: str
    token: str
    """`Last-Event-ID`, or the empty string, as all the others."""
    about: str = ""
    status: int = 0
    answered_session: str = ""
    ids: list[str] = field(default_factory=list[str])
    brought_event: asyncio.Event = field(default_factory=asyncio.Event)

    def __str__(self) -> str:
        asked = f"{self.method} {self.about}".strip()
        shown = f", Last-Event-ID {self.token}" if self.token else ""
        answer = f"{self.status}, session {short(self.answered_session)}" if self.status else "no answer"
        return f"{asked}, session {short(self.session)}{shown} -> {answer}"


def short(session_id: str) -> str:
    """Enough of a session id to tell it from the others."""
    return session_id[:6] or "none"


class Wire:
    """The traffic of one connection. One request is under way at a time, as HTTP/1.1 has it."""

    def __init__(self, log: Callable[[str], None], answered: Callable[[Exchange], None]) -> None:
        """`log` takes a line of text for everything; `answered` is given an exchange when its status is known."""
        self._log = log
        self._answered = answered
        self.exchange: Exchange | None = None

    def sent(self, data: bytes) -> None:
        """The client wrote something. Heads come in one piece here: both sides write them so."""
        if start := _REQUEST.match(data):
            headers = _headers(data)
            self.exchange = Exchange(
                start[1].decode(), headers.get(b"mcp-session-id", ""), headers.get(b"last-event-id", "")
            )
        if self.exchange and (method := _RPC_METHOD.search(data)):
            self.exchange.about = method[1].decode("utf-8", "replace")

    def received(self, data: bytes) -> None:
        """The server wrote something."""
        if not self.exchange:
            return
        if start := _RESPONSE.match(data):
            self.exchange.status = int(start[1])
            self.exchange.answered_session = _headers(data).get(b"mcp-session-id", "")
            self._log(str(self.exchange))
            self._answered(self.exchange)
        for event_id in _EVENT_ID.findall(data):
            self.exchange.ids.append(event_id.decode("utf-8", "replace"))
            self.exchange.brought_event.set()
            self._log(f"    {self.exchange.method}, session {short(self.exchange.session)}: id {self.exchange.ids[-1]}")

    def ended(self) -> None:
        """The connection is gone."""
        if self.exchange and not self.exchange.status:
            self._log(str(self.exchange))


def _headers(data: bytes) -> dict[bytes, str]:
    head = data.partition(b"\r\n\r\n")[0]
    return {name.lower(): value.decode("latin-1") for name, value in _HEADER.findall(head)}

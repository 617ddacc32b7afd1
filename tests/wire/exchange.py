"""One request of the scripted client, and all that came back so far."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from .sockets import abort, body_pieces, read_head

if TYPE_CHECKING:
    from collections.abc import Callable

    from .driven.steps import Json

__all__ = ["Event", "Exchange"]


@dataclass
class Event:
    """One SSE event, with only the fields that were on the wire for this very event."""

    id: str | None = None
    event: str | None = None
    data: str | None = None

    @classmethod
    def parse(cls, block: str) -> Event:
        event = cls()
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            if name in ("id", "event", "data"):
                value = value.removeprefix(" ")
                setattr(event, name, f"{event.data}\n{value}" if name == "data" and event.data else value)
        return event

    @property
    def rpc(self) -> Json:
        try:
            message: Any = json.loads(self.data or "{}")
        except ValueError:
            return {}
        return cast("Json", message) if isinstance(message, dict) else {}

    @property
    def is_message(self) -> bool:
        return bool(self.data)

    @property
    def is_response(self) -> bool:
        return "result" in self.rpc or "error" in self.rpc


def _text(message: Json) -> Any:
    """The payload that tells one message of the test server from another."""
    params: Json = message.get("params") or {}
    result: Json = message.get("result") or {}
    content: list[Json] = result.get("content", [])
    return params.get("data", params.get("progress", content[0].get("text") if content else None))


@dataclass
class Exchange:
    """A request in progress; `receive` runs until its response has ended."""

    writer: asyncio.StreamWriter
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    events: list[Event] = field(default_factory=list[Event])
    ended: bool = False
    cursor: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    pump: asyncio.Task[None] | None = None

    async def receive(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await read_head(reader)
            if head is not None:
                self.status, self.headers = int(head.first.split()[1]), head.headers
                self.changed.set()
                await self._receive_body(reader)
        self.ended = True
        self.changed.set()

    async def _receive_body(self, reader: asyncio.StreamReader) -> None:
        streaming = self.headers.get("content-type", "").startswith("text/event-stream")
        text = ""
        async for piece in body_pieces(reader, self.headers):
            text += piece.decode().replace("\r\n", "\n")
            while streaming and "\n\n" in text:
                block, _, text = text.partition("\n\n")
                self._take(block)
        if text and not streaming:
            self.events.append(Event(data=text))

    def _take(self, block: str) -> None:
        if not all(line.startswith(":") for line in block.split("\n")):
            self.events.append(Event.parse(block))
        self.changed.set()

    async def wait_until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Whether it holds in time; not waiting on when the response has ended."""
        deadline = time.monotonic() + seconds
        while not holds():
            self.changed.clear()
            left = deadline - time.monotonic()
            if left <= 0 or self.ended:
                return holds()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.changed.wait(), left)
        return True

    async def drop(self, *, reset: bool) -> None:
        """Cuts the connection, with RST or FIN."""
        if self.pump is not None:
            self.pump.cancel()
        if reset:
            abort(self.writer)
        else:
            self.writer.close()

    def last_id(self) -> str | None:
        """The latest id among the events that were read."""
        return next((event.id for event in reversed(self.events[: self.cursor]) if event.id), None)

    def summary(self) -> Json:
        """What a `wire` section may ask for."""
        messages = [event for event in self.events if event.is_message]
        bodies = [event.rpc for event in self.events]
        return {
            "status": self.status,
            "messages": len(messages),
            "primings": len(self.events) - len(messages),
            "ids": [event.id for event in messages],
            "asks": [rpc["method"] for rpc in bodies if "method" in rpc and "id" in rpc],
            "texts": [_text(event.rpc) for event in messages],
            "responses": [event.rpc.get("id") for event in self.events if event.is_response],
            "errors": [rpc["error"]["code"] for rpc in bodies if "error" in rpc],
            "names_session": "mcp-session-id" in self.headers,
            "ended": self.ended,
        }

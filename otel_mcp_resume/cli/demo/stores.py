"""The event stores of the demo's servers: the obvious one, and four with habits that real ones have.

An event store keeps what a server sends, so that a client that shows `Last-Event-ID` can be sent what it missed.
The SDK calls `store_event` for every message, and `replay_events_after` when a client comes back with a token.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mcp.server.streamable_http import EventMessage, EventStore

__all__ = ["STORES", "EventLog", "ExpiringLog", "SessionLog", "SlowLog", "TrustingLog"]


@dataclass(frozen=True)
class _Row:
    event_id: str
    stream: str
    message: Any
    """The JSON-RPC message, or None for a priming event: an id without content, which opens a stream."""
    at: float


class EventLog(EventStore):
    """One list of everything, with numbers for ids; a replay brings what followed on the stream of the token.

    The SDK gives one store to all sessions of a server, and names streams by request id or `_GET_stream`, which
    are only unique within a session. Two sessions in one such store get each other's messages.
    """

    def __init__(self, numbers: Iterator[int]) -> None:
        self.rows: list[_Row] = []
        self._numbers = numbers

    async def store_event(self, stream_id: str, message: Any) -> str:
        event_id = str(next(self._numbers))
        self.rows.append(_Row(event_id, stream_id, message, time.monotonic()))
        return event_id

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        position = next((at for at, row in enumerate(self.rows) if row.event_id == last_event_id), None)
        if position is None:
            return None  # the SDK makes this a 200 with an empty body
        stream = self.rows[position].stream
        for row in self.rows[position + 1 :]:
            if row.stream == stream and row.message is not None:
                await send_callback(EventMessage(row.message, row.event_id))
        return stream


class ExpiringLog(EventLog):
    """Forgets what is older than its time to live, as a cache does. The client's token may be among that."""

    time_to_live = 0.1  # seconds; a real one has minutes, and a client that sleeps for longer

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        oldest = time.monotonic() - self.time_to_live
        self.rows = [row for row in self.rows if row.at >= oldest]
        return await super().replay_events_after(last_event_id, send_callback)


class SlowLog(EventLog):
    """Takes a while to find out that nothing more is to be replayed, as a database behind a network does.

    What the server sends in that while is stored too late to be replayed, and finds no stream to go out on.
    """

    last_page = 0.6  # seconds

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        stream = await super().replay_events_after(last_event_id, send_callback)
        await asyncio.sleep(self.last_page)
        return stream


class SessionLog(EventLog):
    """A log for one session, on an instance that counts all its events, which takes tokens for what they look like.

    It sends whatever has a higher number than the token, and believes that an id it has never seen must be one
    of the standalone stream. With a token of another instance that means: nothing is missing, all is well.
    """

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        known = {row.event_id: row.stream for row in self.rows}
        stream = known.get(last_event_id, "_GET_stream")
        for row in self.rows:
            if row.stream == stream and row.message is not None and int(row.event_id) > int(last_event_id):
                await send_callback(EventMessage(row.message, row.event_id))
        return stream


class TrustingLog(EventLog):
    """Believes that a token it has never seen is one of the standalone stream, after which nothing was sent."""

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        return await super().replay_events_after(last_event_id, send_callback) or "_GET_stream"


STORES: dict[str, type[EventLog] | None] = {
    "log": EventLog,
    "expiring": ExpiringLog,
    "slow": SlowLog,
    "trusting": TrustingLog,
    "none": None,
}
"""What `--store` of a demo server may be."""

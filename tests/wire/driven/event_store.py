"""An event store that keeps everything, with the habits that a case asks for."""

from __future__ import annotations

import asyncio
import importlib
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from .steps import Json

__all__ = ["make_store"]

Send = Callable[[Any], Awaitable[None]]


class _Rows:
    """The events of all streams in the order in which they came.

    ids:    global-int (one counter for all), stream-int (`STREAM:n`), uuid, long (3,000 characters)
    replay: stream (as it should be), everything (ignores streams), inclusive (repeats the token's own
            event), forgetful (has lost every cursor), slow (lingers after the last replayed event)
    """

    def __init__(self, options: Json) -> None:
        self.ids: str = options.get("ids", "global-int")
        self.replay: str = options.get("replay", "stream")
        self.linger: float = options.get("linger", 0.6) if self.replay == "slow" else 0
        self.rows: list[tuple[str, str, Any]] = []

    def store(self, stream: str, message: Any) -> str:
        event_id = self._new_id(stream)
        self.rows.append((event_id, stream, message))
        return event_id

    def _new_id(self, stream: str) -> str:
        if self.ids == "uuid":
            return str(uuid.uuid4())
        if self.ids == "long":
            return f"{len(self.rows) + 1:03000}"
        if self.ids == "stream-int":
            return f"{stream}:{sum(row[1] == stream for row in self.rows) + 1}"
        return str(len(self.rows) + 1)

    def after(self, event_id: str) -> tuple[str, list[tuple[str, Any]]] | None:
        """The stream of a cursor and what it is sent; None if the cursor is unknown."""
        position = next((i for i, row in enumerate(self.rows) if row[0] == event_id), None)
        if position is None or self.replay == "forgetful":
            return None
        stream = self.rows[position][1]
        rest = self.rows[position + (self.replay != "inclusive") :]
        whole = self.replay == "everything"
        return stream, [(row[0], row[2]) for row in rest if row[2] is not None and (whole or row[1] == stream)]


def make_store(options: Json) -> Any:
    """A factory of stores for the SDK server."""
    module = importlib.import_module("mcp.server.streamable_http")
    base: Any = module.EventStore

    class Store(base):  # type: ignore[misc] # the SDK under test decides what it is
        def __init__(self) -> None:
            self.rows = _Rows(options)

        async def store_event(self, stream_id: str, message: Any) -> str:
            return self.rows.store(stream_id, message)

        async def replay_events_after(self, last_event_id: str, send_callback: Send) -> str | None:
            found = self.rows.after(last_event_id)
            if found is None:
                return None
            stream, events = found
            for event_id, message in events:
                await send_callback(module.EventMessage(message, event_id))
            if self.rows.linger:
                await asyncio.sleep(self.rows.linger)
            return stream

    return Store

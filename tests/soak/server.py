"""The soak's server: an ordinary application, with one bounded event store for each session."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections import deque
from typing import Any

import uvicorn
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from otel_mcp_resume.cli.demo.orders import Orders, say
from otel_mcp_resume.cli.demo.sdk import Context, http_app

KEPT = 200
"""Events of a session that its store remembers."""
RETRY_INTERVAL = 100
"""Milliseconds."""
PAUSE = 0.5
"""Seconds between two news of a subscription, and two rows of a long call."""


class Store(EventStore):
    """One session's events."""

    def __init__(self) -> None:
        self._rows: deque[tuple[str, str, Any]] = deque(maxlen=KEPT)
        self._numbers = itertools.count(1)

    async def store_event(self, stream_id: str, message: Any) -> str:
        event_id = str(next(self._numbers))
        self._rows.append((event_id, stream_id, message))
        return event_id

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        rows = list(self._rows)
        stream = next((row[1] for row in rows if row[0] == last_event_id), None)
        for event_id, of, message in rows:
            if of == stream and message is not None and int(event_id) > int(last_event_id):
                await send_callback(EventMessage(message, event_id))
        return stream


def _store_of_a_new_session(_: Any) -> Store:
    return Store()


# The SDK asks its manager for the store once for each session, and would give all sessions the same one.
setattr(  # noqa: B010 - to the type checker it is an attribute of instances
    StreamableHTTPSessionManager, "event_store", property(_store_of_a_new_session, lambda _, __: None)
)


async def rows(ctx: Context, count: int) -> str:
    """A long call which hangs up on its client half-way, for that to come back."""
    for number in range(count):
        await ctx.info(f"row {number}")
        await asyncio.sleep(PAUSE)
        if number == count // 2 and hasattr(ctx, "close_sse_stream"):
            await ctx.close_sse_stream()
    return "done"


async def news(ctx: Context, count: int) -> str:
    """Subscribes to news, which come on the session's own stream."""
    session: Any = ctx.session

    async def announce() -> None:
        for number in range(count):
            await session.send_log_message("info", f"news {number}")
            await asyncio.sleep(PAUSE)

    task = asyncio.create_task(announce())
    _running.add(task)
    task.add_done_callback(_finished)
    return "subscribed"


def _finished(task: asyncio.Task[None]) -> None:
    _running.discard(task)
    if not task.cancelled():
        task.exception()  # the session may be gone by then


_running: set[asyncio.Task[None]] = set()


def main() -> None:
    orders = Orders()
    app = http_app([rows, news], event_store=Store(), retry_interval=RETRY_INTERVAL)
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))

    def stop() -> None:
        server.should_exit = True

    orders.on_end = stop
    listener = socket.create_server(("127.0.0.1", 0))
    say("ready", port=listener.getsockname()[1])
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()

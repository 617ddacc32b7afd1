"""The server and the client that are measured, on either line of the SDK. Imported in the processes of an arm only."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import Any

__all__ = ["connected", "http_client", "make_app"]

IS_MODERN = not version("mcp").startswith("1.")
RETRY = 50
"""Milliseconds until a client comes back. By then a cut call has ended: the SDK loses what is emitted between the end
of a replay and the return to live, and nobody wants to wait for that here."""
KEPT = 1000
"""Events that the store of the benchmark keeps: enough for every resume, and its memory stays flat."""


def _store() -> Any:
    module: Any = importlib.import_module("mcp.server.streamable_http")

    class Store(module.EventStore):  # type: ignore[misc] # the SDK under test decides what it is
        def __init__(self) -> None:
            self.latest = 0
            self.rows: dict[int, tuple[str, Any]] = {}

        async def store_event(self, stream_id: str, message: Any) -> str:
            self.latest += 1
            self.rows[self.latest] = stream_id, message
            self.rows.pop(self.latest - KEPT, None)
            return str(self.latest)

        async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
            row = self.rows.get(int(last_event_id))
            if row is None:
                return None
            for number in range(int(last_event_id) + 1, self.latest + 1):
                stream_id, message = self.rows[number]
                if stream_id == row[0] and message is not None:
                    await send_callback(module.EventMessage(message, str(number)))
            return row[0]

    return Store()


def make_app(*, stored: bool) -> Any:
    """An application with three tools: one that answers, one that tells a lot first, and one whose stream is cut."""
    http: dict[str, Any] = {"event_store": _store(), "retry_interval": RETRY} if stored else {}
    module: Any = importlib.import_module("mcp.server.mcpserver" if IS_MODERN else "mcp.server.fastmcp")
    server = (
        module.MCPServer("bench", log_level="CRITICAL")
        if IS_MODERN
        else module.FastMCP("bench", log_level="CRITICAL", **http)
    )

    async def tell(context: Any, count: int) -> None:
        for number in range(count):
            await context.session.send_log_message("info", f"row {number}", related_request_id=context.request_id)

    async def burst(ctx: Any, count: int) -> str:
        await tell(ctx, count)
        return "told"

    async def cut(ctx: Any) -> str:
        await tell(ctx, 1)
        await ctx.close_sse_stream()
        await tell(ctx, 2)
        return "told"

    async def echo(text: str) -> str:
        return text

    # The SDK finds its context by annotation; a name in a string would not resolve here.
    burst.__annotations__ = {"ctx": module.Context, "count": int, "return": str}
    cut.__annotations__ = {"ctx": module.Context, "return": str}
    echo.__annotations__ = {"text": str, "return": str}
    for tool in (burst, cut, echo):
        server.tool()(tool)
    app = server.streamable_http_app(**http) if IS_MODERN else server.streamable_http_app()
    server.session_manager.max_sessions = None  # newer ones refuse more than 10,000
    return app


def http_client() -> Any:
    """An HTTP client for many sessions: one of its own for each would be most of what a session weighs."""
    library: Any = importlib.import_module("httpx2" if IS_MODERN else "httpx")
    limits = library.Limits(max_connections=None, max_keepalive_connections=20)
    return library.AsyncClient(timeout=None, limits=limits)


@contextlib.asynccontextmanager
async def connected(url: str, heard: Any = None, http: Any = None) -> AsyncIterator[Any]:
    """A session of the SDK's client that is not initialised yet. `heard` is called for each log message."""
    module: Any = importlib.import_module("mcp.client.streamable_http")
    session_class: Any = importlib.import_module("mcp").ClientSession
    async with (
        module.streamable_http_client(url, http_client=http) as streams,
        session_class(streams[0], streams[1], logging_callback=heard) as session,
    ):
        yield session

"""The servers: the Python SDK's and FastMCP's in this process, the TypeScript SDK's in processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.peers.nodejs import running_script
from tests.sdk.server_side import running
from tests.wire.driven.event_store import make_store
from tests.wire.driven.steps import sdk_is_modern

__all__ = ["RETRY", "STORES", "serving"]

RETRY = 200
"""Milliseconds that a server asks a client to wait before it comes back."""

STORES = {"ordered": {"ids": "stream-int"}, "example": {"ids": "uuid"}}
"""The Python SDK's example gives random ids. `ordered` is what the peers of the other language have under that name."""


@contextlib.asynccontextmanager
async def serving(kind: str, store: str | None, home: Path | None, words: Callable[[str], None]) -> AsyncIterator[int]:
    """The port of a fresh server. `kind` is `python`, `fastmcp`, `sdk1` or `sdk2`.

    `words` is called with what an unwatched SDK reports as an error.
    """
    if kind in ("python", "python-2026", "fastmcp"):
        async with running(fastmcp_app(store) if kind == "fastmcp" else python_app(store)) as port:
            yield port
    else:
        assert home is not None

        def told(message: dict[str, Any]) -> None:
            words(f"server: {message['problem']}")

        command = ["modern.mjs"] if kind == "sdk2-2026" else ["server.mjs", kind, store or "none"]
        async with running_script(home, *command, told=told) as script:
            yield await script.port


def python_app(store: str | None) -> Any:
    """The high-level server of the SDK."""
    kept = make_store(STORES[store])() if store else None
    options: dict[str, Any] = {"event_store": kept, "retry_interval": RETRY} if store else {}
    module = importlib.import_module("mcp.server.mcpserver" if sdk_is_modern() else "mcp.server.fastmcp")
    server = module.MCPServer("peer") if sdk_is_modern() else module.FastMCP("peer", log_level="CRITICAL", **options)

    async def forget() -> None:
        assert kept is not None
        kept.rows.rows.clear()

    _add_tools(server, module.Context, forget)
    return server.streamable_http_app(**options) if sdk_is_modern() else server.streamable_http_app()


def fastmcp_app(store: str | None) -> Any:
    """FastMCP, with its own store."""
    fastmcp = importlib.import_module("fastmcp")
    options: dict[str, Any] = {}
    storage = importlib.import_module("key_value.aio.stores.memory").MemoryStore()
    if store:
        kept = importlib.import_module("fastmcp.server.event_store").EventStore(storage=storage)
        options = {"event_store": kept, "retry_interval": RETRY}
    server = fastmcp.FastMCP("peer")

    async def forget() -> None:
        for collection in await storage.collections():
            for key in await storage.keys(collection=collection):
                await storage.delete(key=key, collection=collection)

    _add_tools(server, fastmcp.Context, forget)
    return server.http_app(**options)


def _add_tools(server: Any, context: type, forget: Callable[[], Awaitable[None]]) -> None:
    """The same tools as in `node/server.mjs`."""
    release = asyncio.Event()
    news = 0

    def tool(play: Callable[[Any], Awaitable[None]]) -> None:
        async def run(ctx: Any) -> str:
            await play(ctx)
            return "done"

        run.__annotations__ = {"ctx": context, "return": str}
        server.tool(name=play.__name__)(run)

    async def log(ctx: Any, text: str) -> None:
        await ctx.session.send_log_message("info", text, related_request_id=ctx.request_id)

    async def count(ctx: Any) -> None:
        for number in (1, 2, 3):
            await log(ctx, f"count {number}")

    async def announce(ctx: Any) -> None:
        nonlocal news
        news += 1
        if hasattr(ctx, "notify_tools_changed"):
            await ctx.notify_tools_changed()  # reaches those who listen, in the generation without sessions
        await ctx.session.send_log_message("info", f"news {news}")

    async def wait(ctx: Any) -> None:
        release.clear()
        await log(ctx, "before")
        await release.wait()
        await log(ctx, "after")

    async def poll(ctx: Any) -> None:
        release.clear()
        await log(ctx, "before")
        await ctx.close_sse_stream()
        await release.wait()
        await log(ctx, "after")

    async def close_standalone(ctx: Any) -> None:
        await ctx.close_standalone_sse_stream()

    async def forget_events(ctx: Any) -> None:
        await forget()

    async def release_(ctx: Any) -> None:
        release.set()

    release_.__name__ = "release"
    for play in (count, announce, wait, poll, release_, close_standalone, forget_events):
        tool(play)

"""A real client and a real server in one process, and a call whose stream is cut and resumed."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from tests.sdk.client_world import connected, text_of, until
from tests.sdk.server_side import running
from tests.wire.driven.event_store import make_store
from tests.wire.driven.steps import sdk_is_modern

__all__ = ["MOMENTS", "Pair", "pair"]

MOMENTS = ("open", "cut", "resumed")
"""Of a call: on its first stream, between the two, on the second one."""

Reached = Callable[[str], Awaitable[None]]


class Pair:
    """The client's session, what it was told, and what is done at each moment of a call."""

    def __init__(self) -> None:
        self.api: Any = None
        self.port = 0
        self.noted: list[str] = []
        self.reached: Reached | None = None

    async def call(self, name: str) -> list[str]:
        """One call that is cut and resumed: its result, and what came before it."""
        result = text_of(await self.api.call_tool("play", {"name": name}))
        return [*(note for note in self.noted if note.startswith(name)), result]

    async def at(self, moment: str) -> None:
        if self.reached is not None:
            await self.reached(moment)


@contextlib.asynccontextmanager
async def pair() -> AsyncIterator[Pair]:
    """Both of them, connected."""
    told = Pair()
    app = _server(told)

    async def note(params: Any) -> None:
        told.noted.append(params.data)

    async with running(app) as told.port, connected(f"http://127.0.0.1:{told.port}/mcp", logging_callback=note) as api:
        told.api = api
        yield told


def _server(told: Pair) -> Any:
    module = importlib.import_module("mcp.server.mcpserver" if sdk_is_modern() else "mcp.server.fastmcp")
    options = {"event_store": make_store({"ids": "global-int"})(), "retry_interval": 10}
    server = module.MCPServer("test") if sdk_is_modern() else module.FastMCP("test", log_level="CRITICAL", **options)
    app = server.streamable_http_app(**options) if sdk_is_modern() else server.streamable_http_app()

    def is_live(request_id: str) -> bool:
        """Whether what is sent now goes straight to the client."""
        transports = server.session_manager._server_instances.values()
        return any(request_id in transport._request_streams for transport in transports)

    async def play(ctx: Any, name: str) -> str:
        async def say(number: int) -> None:
            await ctx.session.send_log_message("info", f"{name} {number}", related_request_id=ctx.request_id)
            await until(lambda: f"{name} {number}" in told.noted or number == 1)

        await say(0)
        await told.at("open")
        await ctx.close_sse_stream()
        await until(lambda: not is_live(str(ctx.request_id)))
        await told.at("cut")
        await say(1)
        # The SDK's server loses what is sent between the end of a replay and this.
        await until(lambda: f"{name} 1" in told.noted and is_live(str(ctx.request_id)))
        await told.at("resumed")
        await say(2)
        return "played"

    play.__annotations__ = {"ctx": module.Context, "name": str, "return": str}
    server.tool()(play)
    return app

"""An application for worker processes: `tests.lifetime.worker_app:app`. Each has sessions and a store of its own."""

from __future__ import annotations

import importlib
import os
from typing import Any

import anyio

from tests.wire.driven.event_store import make_store
from tests.wire.driven.steps import sdk_is_modern

__all__ = ["app"]


def _app() -> Any:
    module = importlib.import_module("mcp.server.mcpserver" if sdk_is_modern() else "mcp.server.fastmcp")
    options = {"event_store": make_store({"ids": "global-int"})(), "retry_interval": 10}
    server = module.MCPServer("test") if sdk_is_modern() else module.FastMCP("test", log_level="CRITICAL", **options)

    def is_live(request_id: str) -> bool:
        """Whether what is sent now goes straight to the client."""
        transports = server.session_manager._server_instances.values()
        return any(request_id in transport._request_streams for transport in transports)

    async def play(ctx: Any, count: int, cut: bool) -> str:
        async def say(what: object) -> None:
            await ctx.session.send_log_message("info", what, related_request_id=ctx.request_id)

        for number in range(count):
            await say(number)
        if cut:
            await ctx.close_sse_stream()
            while is_live(str(ctx.request_id)):  # noqa: ASYNC110 - the SDK tells nobody
                await anyio.sleep(0.01)
            await say("while nobody listened")
            while not is_live(str(ctx.request_id)):  # noqa: ASYNC110 - see above
                await anyio.sleep(0.01)
        return str(os.getpid())

    play.__annotations__ = {"ctx": module.Context, "count": int, "cut": bool, "return": str}
    server.tool()(play)
    return server.streamable_http_app(**options) if sdk_is_modern() else server.streamable_http_app()


app = _app()

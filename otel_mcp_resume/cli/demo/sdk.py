"""The few names that differ between mcp 1.x and 2.x, so that the rest of the demo reads the same on both."""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mcp import ClientSession

__all__ = ["Context", "client_session", "http_app", "protocol_server", "result_text"]

_MODERN = not version("mcp").startswith("1.")
_servers: Any = importlib.import_module("mcp.server.mcpserver" if _MODERN else "mcp.server.fastmcp")
_clients: Any = importlib.import_module("mcp.client.streamable_http")

if TYPE_CHECKING:
    from typing import Any as Context
else:
    Context = _servers.Context

Tool = Callable[..., Any]


def http_app(tools: Iterable[Tool], **http: Any) -> Any:
    """The ASGI application of an ordinary server, `http` being the options of its HTTP transport."""
    if _MODERN:
        return _server(tools).streamable_http_app(**http)
    return _server(tools, **http).streamable_http_app()


def protocol_server(tools: Iterable[Tool]) -> Any:
    """The same server without a transport: it can `run` over a pair of message streams."""
    server = _server(tools)
    return getattr(server, "_lowlevel_server" if _MODERN else "_mcp_server")


def _server(tools: Iterable[Tool], **http: Any) -> Any:
    server = _servers.MCPServer("demo") if _MODERN else _servers.FastMCP("demo", log_level="WARNING", **http)
    for tool in tools:
        server.tool()(tool)
    return server


@asynccontextmanager
async def client_session(url: str, **callbacks: Any) -> AsyncGenerator[ClientSession, None]:
    """An initialized session, as the SDK's documentation shows it. `callbacks` are those of `ClientSession`."""
    connect = getattr(_clients, "streamable_http_client", None) or _clients.streamablehttp_client
    async with connect(url) as streams, ClientSession(streams[0], streams[1], **callbacks) as session:
        await session.initialize()
        yield session


def result_text(result: Any) -> str:
    """The text of a tool result."""
    return " ".join(block.text for block in result.content)

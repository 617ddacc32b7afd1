"""The few names that differ between mcp 1.x and 2.x, so that the rest of the demo reads the same on both."""

from __future__ import annotations

import importlib
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mcp import ClientSession

__all__ = [
    "Context",
    "EventIds",
    "client_session",
    "http_app",
    "legacy_app",
    "legacy_session",
    "protocol_server",
    "result_text",
]

_MODERN = not version("mcp").startswith("1.")
_servers: Any = importlib.import_module("mcp.server.mcpserver" if _MODERN else "mcp.server.fastmcp")
_clients: Any = importlib.import_module("mcp.client.streamable_http")
_legacy: Any = importlib.import_module("mcp.client.sse")
_new_http_client: Any = importlib.import_module("mcp.shared._httpx_utils").create_mcp_http_client

_ID = re.compile(rb"(?m)^id: ?([^\r\n]*)")

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


def legacy_app(tools: Iterable[Tool]) -> Any:
    """The ASGI application of the same server on HTTP+SSE, at `/sse`."""
    return _server(tools).sse_app()


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
async def client_session(
    url: str, headers: Mapping[str, str] | None = None, **callbacks: Any
) -> AsyncGenerator[ClientSession, None]:
    """An initialized session, as the SDK's documentation shows it. `callbacks` are those of `ClientSession`."""
    async with (
        _connected(url, dict(headers or {})) as streams,
        ClientSession(streams[0], streams[1], **callbacks) as session,
    ):
        await session.initialize()
        yield session


@asynccontextmanager
async def _connected(url: str, headers: dict[str, str]) -> AsyncGenerator[Any, None]:
    connect = getattr(_clients, "streamable_http_client", None)
    if connect is None:
        async with _clients.streamablehttp_client(url, headers) as streams:
            yield streams
    else:
        async with _new_http_client(headers) as http, connect(url, http_client=http) as streams:
            yield streams


class EventIds:
    """Remembers the last id of an event stream, as every browser does, though the SDK on HTTP+SSE does not."""

    def __init__(self) -> None:
        self.last = ""

    async def watch(self, response: Any) -> None:
        """Reads along with a response of the SDK's HTTP client."""
        read = response.aiter_bytes

        async def aiter_bytes(*size: int) -> AsyncGenerator[bytes, None]:
            async for data in read(*size):
                self.last = (_ID.findall(data) or [self.last.encode()])[-1].decode()
                yield data

        if response.headers.get("content-type", "").startswith("text/event-stream"):
            response.aiter_bytes = aiter_bytes


@asynccontextmanager
async def legacy_session(url: str, ids: EventIds, **callbacks: Any) -> AsyncGenerator[ClientSession, None]:
    """An initialized session on HTTP+SSE. `ids` learns those of its events."""

    def http_client(**options: Any) -> Any:
        client = _new_http_client(**options)
        client.event_hooks = {"response": [ids.watch]}
        return client

    async with (
        _legacy.sse_client(url, httpx_client_factory=http_client) as streams,
        ClientSession(*streams, **callbacks) as session,
    ):
        await session.initialize()
        yield session


def result_text(result: Any) -> str:
    """The text of a tool result."""
    return " ".join(block.text for block in result.content)

"""How a session is opened, by transport and by SDK version."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

__all__ = ["CONNECTIONS", "Connect"]

Headers = dict[str, str]
Connect = Callable[[str, Headers], AbstractAsyncContextManager[Any]]


@contextlib.asynccontextmanager
async def _streamable_streams(url: str, headers: Headers) -> AsyncGenerator[Any, None]:
    """The transport by its current name, or by the one it had before mcp 1.24."""
    module = importlib.import_module("mcp.client.streamable_http")
    if not hasattr(module, "streamable_http_client"):
        async with module.streamablehttp_client(url, headers=headers) as streams:
            yield streams
        return
    make_client = importlib.import_module("mcp.shared._httpx_utils").create_mcp_http_client
    async with make_client(headers=headers) as http, module.streamable_http_client(url, http_client=http) as streams:
        yield streams


@contextlib.asynccontextmanager
async def _streamable_http(url: str, headers: Headers) -> AsyncGenerator[Any, None]:
    session_class = importlib.import_module("mcp").ClientSession
    async with _streamable_streams(url, headers) as streams, session_class(streams[0], streams[1]) as session:
        yield session


@contextlib.asynccontextmanager
async def _sse(url: str, headers: Headers) -> AsyncGenerator[Any, None]:
    session_class = importlib.import_module("mcp").ClientSession
    sse_client = importlib.import_module("mcp.client.sse").sse_client
    async with sse_client(url, headers=headers) as streams, session_class(streams[0], streams[1]) as session:
        yield session


@contextlib.asynccontextmanager
async def _stateless(url: str, _: Headers) -> AsyncGenerator[Any, None]:
    async with importlib.import_module("mcp").Client(url, mode="auto") as client:
        yield client


CONNECTIONS: dict[str, tuple[Connect, str]] = {
    "streamable_http": (_streamable_http, "/mcp"),
    "sse": (_sse, "/sse"),
    "stateless": (_stateless, "/mcp"),
}

"""Coroutines that nobody goes on with: they are closed by whoever drops them, in whatever context that is."""

from __future__ import annotations

import importlib
from collections.abc import Generator
from contextvars import copy_context
from typing import Any

from otel_mcp_resume.watch.facts import StreamClosed, StreamOpened
from tests.sdk.client_world import HTTP, faults, plugged
from tests.sdk.server_side import observed

HEAD = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}


class Forever:
    def __await__(self) -> Generator[None, None, None]:
        yield


def begun_and_dropped(coroutine: Any) -> None:
    """Raises what closing it raises, which the interpreter would show to the application."""
    copy_context().run(coroutine.send, None)
    coroutine.close()


class Silent(HTTP.AsyncBaseTransport):  # type: ignore[misc] # whichever HTTP library it is
    async def handle_async_request(self, _: Any) -> Any:
        await Forever()


def test_a_client_that_is_dropped_complains_of_nothing() -> None:
    async def play() -> None:
        transport = importlib.import_module("mcp.client.streamable_http").StreamableHTTPTransport("http://h/mcp")
        transport.session_id = "S1"
        async with HTTP.AsyncClient(transport=Silent()) as http:
            await transport.terminate_session(http)

    with plugged() as plugin:
        begun_and_dropped(play())
        assert faults(plugin) == {}


def test_an_exchange_of_a_server_ends_when_it_is_dropped() -> None:
    sdk: Any = importlib.import_module("mcp.server.streamable_http").StreamableHTTPServerTransport

    class Held(sdk):  # type: ignore[misc] # what it has of its own waits for an event loop
        async def _handle_get_request(self, _: Any, send: Any) -> None:
            await send(HEAD)
            await Forever()

    async def receive() -> Any: ...

    async def send(_: Any) -> None: ...

    with observed() as seen:
        scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        begun_and_dropped(Held("S1").handle_request(scope, receive, send))
        assert seen.errors == []
        assert len(seen.of(StreamOpened)) == len(seen.of(StreamClosed)) == 1

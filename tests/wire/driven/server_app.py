"""The ASGI application of the test server, as each SDK generation builds it."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import socket
from collections.abc import AsyncGenerator
from typing import Any

from .event_store import make_store
from .steps import HOST, Json, say, sdk_is_modern
from .tool_script import play_script

__all__ = ["drive"]

HTTP_OPTIONS = {"json_response": "json_response", "stateless": "stateless_http"}


def drive(options: Json) -> None:
    """Serves the application that `options` describe, and says on which port."""
    uvicorn: Any = importlib.import_module("uvicorn")
    server = uvicorn.Server(uvicorn.Config(_make_app(options), log_level="critical"))
    sock = socket.socket()
    sock.bind((HOST, 0))
    sock.listen(64)
    say(port=sock.getsockname()[1])
    server.run(sockets=[sock])


def _make_app(options: Json) -> Any:
    stored: Json | None = options.get("store")
    store = make_store(stored) if stored else None
    http: Json = {key: options[option] for option, key in HTTP_OPTIONS.items() if option in options}
    if store is not None:
        http |= {"event_store": store(), **_retry_interval()}
    server = _make_server(http)
    if options.get("transport") == "sse":
        return server.sse_app()
    if stored and stored.get("scope") == "session":
        return _scoped_app(server, store)
    return server.streamable_http_app(**http) if sdk_is_modern() else server.streamable_http_app()


def _manager_class() -> Any:
    return importlib.import_module("mcp.server.streamable_http_manager").StreamableHTTPSessionManager


def _retry_interval() -> Json:
    """In milliseconds, where the SDK knows it: since mcp 1.23."""
    known = "retry_interval" in inspect.signature(_manager_class().__init__).parameters
    return {"retry_interval": 200} if known else {}


def _make_server(http: Json) -> Any:
    """A server with the one tool. 1.x takes its HTTP options here, 2.x when the application is built."""
    module = importlib.import_module("mcp.server.mcpserver" if sdk_is_modern() else "mcp.server.fastmcp")
    server = module.MCPServer("wire") if sdk_is_modern() else module.FastMCP("wire", log_level="CRITICAL", **http)

    async def play(ctx: Any, script: list[Any]) -> str:
        return await play_script(ctx, script)

    # The SDK finds its context by annotation; a name in a string would not resolve here.
    play.__annotations__ = {"ctx": module.Context, "script": list[Any], "return": str}
    server.tool()(play)
    return server


def _scoped_app(server: Any, store: Any) -> Any:
    """An application mounted by hand, whose manager gives each session a store of its own."""
    base: Any = _manager_class()
    applications: Any = importlib.import_module("starlette.applications")
    routing: Any = importlib.import_module("starlette.routing")

    class ScopedManager(base):  # type: ignore[misc] # the SDK under test decides what it is
        @property
        def event_store(self) -> Any:
            return store()

        @event_store.setter
        def event_store(self, _: Any) -> None:
            """The base class sets one for all sessions."""

    lowlevel = server._lowlevel_server if sdk_is_modern() else server._mcp_server
    manager: Any = ScopedManager(lowlevel, **_retry_interval())

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[None, None]:
        async with manager.run():
            yield

    return applications.Starlette(routes=[routing.Mount("/", app=manager.handle_request)], lifespan=lifespan)

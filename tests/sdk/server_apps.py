"""Every way in which a Python user builds a server on the SDK. Each has one tool, whose argument is a script."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.wire.driven.steps import Json, sdk_is_modern
from tests.wire.driven.tool_script import play_script

__all__ = [
    "bare_transport_app",
    "high_level_app",
    "in_fastapi",
    "in_starlette",
    "low_level_server",
    "manager_app",
    "manager_class",
    "sse_app",
]

SCHEMA: Json = {"type": "object", "properties": {"script": {"type": "array"}}}


def manager_class() -> Any:
    return importlib.import_module("mcp.server.streamable_http_manager").StreamableHTTPSessionManager


def _high_level(options: Json) -> Any:
    module = importlib.import_module("mcp.server.mcpserver" if sdk_is_modern() else "mcp.server.fastmcp")
    server = module.MCPServer("test") if sdk_is_modern() else module.FastMCP("test", log_level="CRITICAL", **options)

    async def play(ctx: Any, script: list[Any]) -> str:
        return await play_script(ctx, script)

    play.__annotations__ = {"ctx": module.Context, "script": list[Any], "return": str}
    server.tool()(play)
    return server


def high_level_app(**options: Any) -> Any:
    """FastMCP of the 1.x SDK, or `MCPServer` of 2.x, as its own application."""
    server = _high_level(options)
    return server.streamable_http_app(**options) if sdk_is_modern() else server.streamable_http_app()


def sse_app() -> Any:
    """The same, of the HTTP+SSE generation."""
    return _high_level({}).sse_app()


class _Context:
    """What `play_script` needs, of a low-level request context."""

    def __init__(self, context: Any) -> None:
        self.session = context.session
        self.request_id = context.request_id


def low_level_server() -> Any:
    """The low-level `Server`."""
    lowlevel: Any = importlib.import_module("mcp.server.lowlevel")
    types: Any = importlib.import_module("mcp.types")
    tool = types.Tool(name="play", **{"inputSchema" if not sdk_is_modern() else "input_schema": SCHEMA})

    async def play(context: Any, arguments: Json) -> list[Any]:
        return [types.TextContent(type="text", text=await play_script(_Context(context), arguments["script"]))]

    if sdk_is_modern():

        async def on_list(*_: Any) -> Any:
            return types.ListToolsResult(tools=[tool])

        async def on_call(context: Any, params: Any) -> Any:
            return types.CallToolResult(content=await play(context, params.arguments))

        return lowlevel.Server("test", on_list_tools=on_list, on_call_tool=on_call)
    server = lowlevel.Server("test")

    async def list_tools() -> list[Any]:
        return [tool]

    async def call_tool(_: str, arguments: Json) -> list[Any]:
        return await play(server.request_context, arguments)

    server.list_tools()(list_tools)
    server.call_tool()(call_tool)
    return server


def manager_app(**options: Any) -> Starlette:
    """The low-level server, with the SDK's manager mounted by hand."""
    manager = manager_class()(low_level_server(), **options)

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        async with manager.run():
            yield

    return Starlette(routes=[Mount("/", app=manager.handle_request)], lifespan=lifespan)


def bare_transport_app(transports: list[Any], **options: Any) -> Starlette:
    """One transport, and nobody who manages it. It is appended to `transports` when the application starts."""
    module: Any = importlib.import_module("mcp.server.streamable_http")

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        transport = module.StreamableHTTPServerTransport(mcp_session_id="the-only-one", **options)
        transports.append(transport)
        server = low_level_server()
        async with transport.connect() as (read, write), anyio.create_task_group() as tasks:
            tasks.start_soon(_serve, server, read, write)
            yield
            tasks.cancel_scope.cancel()

    async def handle(scope: Any, receive: Any, send: Any) -> None:
        await transports[-1].handle_request(scope, receive, send)

    return Starlette(routes=[Mount("/", app=handle)], lifespan=lifespan)


async def _serve(server: Any, read: Any, write: Any) -> None:
    options = server.create_initialization_options()
    if "stateless" in inspect.signature(server.run).parameters:
        await server.run(read, write, options, stateless=True)
    else:
        await server.run(read, write, options)


def in_starlette(**apps: Any) -> Starlette:
    """Applications mounted in one more, whose lifespan they share."""
    return Starlette(routes=[Mount(f"/{name}", app=app) for name, app in apps.items()], lifespan=_lifespans(apps))


def in_fastapi(**apps: Any) -> Any:
    """The same in FastAPI."""
    fastapi = importlib.import_module("fastapi").FastAPI(lifespan=_lifespans(apps))
    for name, app in apps.items():
        fastapi.mount(f"/{name}", app)
    return fastapi


def _lifespans(apps: Json) -> Callable[[Any], contextlib.AbstractAsyncContextManager[None]]:
    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for app in apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    return lifespan

"""The streamable HTTP server of the SDK, 1.12 to 2.3: every hook, and where it goes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from otel_mcp_resume.rules.terms import Generation
from otel_mcp_resume.sdk.server_http import HttpHooks, Told
from otel_mcp_resume.sdk.server_transport import TransportHooks
from otel_mcp_resume.versions import has_module
from otel_mcp_resume.watch.calls import Tools

if TYPE_CHECKING:
    from otel_mcp_resume.sdk.runtime import Runtime
    from otel_mcp_resume.watch.server_exchange import Exchange

__all__ = ["HOOKS", "install"]

MODULE = "mcp.server.streamable_http"
MANAGER_MODULE = "mcp.server.streamable_http_manager"
MODERN_MODULE = "mcp.server._streamable_http_modern"
"""Where the generation without sessions is served. There is none in 1.x."""

INIT = "StreamableHTTPServerTransport.__init__"
CONNECT = "StreamableHTTPServerTransport.connect"
TERMINATE = "StreamableHTTPServerTransport.terminate"
REQUEST = "StreamableHTTPServerTransport.handle_request"
STATEFUL = "StreamableHTTPSessionManager._handle_stateful_request"
STATELESS = "StreamableHTTPSessionManager._handle_stateless_request"
ANY_GENERATION = "StreamableHTTPSessionManager._handle_request"
WITHOUT_SESSIONS = "handle_modern_request"
"""An application that was built before the hooks has bound the one above, and still comes here."""

HOOKS = (INIT, CONNECT, TERMINATE, REQUEST, STATEFUL, STATELESS)

_HANDSHAKE_VERSIONS = frozenset(("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"))
"""Of the generation with sessions, as the modern SDK routes it: an unknown version belongs to the one without."""


def install(runtime: Runtime) -> None:
    """Puts all hooks in place that this version of the SDK has. The missing ones are reported by the patches."""
    transports = TransportHooks(runtime, str(getattr(import_module(MODULE), "GET_STREAM_KEY", "_GET_stream")))
    managers: WeakKeyDictionary[Any, Tools] = WeakKeyDictionary()

    def tools_of_manager(manager: Any) -> Tools:  # or of a server, whichever is first to be reached
        tools = managers.get(manager)
        if tools is None:
            tools = managers[manager] = Tools()
        return tools

    def reached_manager(_: Any, exchange: Exchange) -> None:
        exchange.generation = Generation.STREAMABLE_HTTP

    def reached_transport(transport: Any, exchange: Exchange) -> None:
        exchange.generation = Generation.STREAMABLE_HTTP
        transports.adopt(transport, REQUEST).serve(exchange)

    patch = runtime.patches.install
    patch(INIT, MODULE, INIT, transports.init_wrapper(INIT))
    patch(CONNECT, MODULE, CONNECT, transports.connect_wrapper(CONNECT))
    patch(TERMINATE, MODULE, TERMINATE, transports.terminate_wrapper(TERMINATE))
    bare = HttpHooks(runtime, lambda _: None)
    patch(REQUEST, MODULE, REQUEST, bare.wrapper(REQUEST, _with_sessions, reached_transport))
    managed = HttpHooks(runtime, tools_of_manager)
    for hook in (STATEFUL, STATELESS):
        patch(hook, MANAGER_MODULE, hook, managed.wrapper(hook, _with_sessions, reached_manager))
    if has_module(MODERN_MODULE):
        for hook in (ANY_GENERATION, WITHOUT_SESSIONS):
            patch(hook, MANAGER_MODULE, hook, managed.wrapper(hook, _by_version, lambda _, __: None))


def _with_sessions(_: Told) -> Generation:
    return Generation.STREAMABLE_HTTP


def _by_version(told: Told) -> Generation:
    version = told.get(b"mcp-protocol-version")
    is_known = version is None or version in _HANDSHAKE_VERSIONS
    return Generation.STREAMABLE_HTTP if is_known else Generation.STATELESS

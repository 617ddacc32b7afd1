"""What the walks have in common: the hooks as a process has them, and messages as the SDK's streams carry them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from otel_mcp_resume.plugin import Plugin, Providers
from otel_mcp_resume.rules.terms import Generation
from otel_mcp_resume.sdk.client import POST, ClientHooks
from otel_mcp_resume.sdk.guard import Guard
from otel_mcp_resume.sdk.http_tap import HttpTap
from otel_mcp_resume.sdk.runtime import Runtime
from otel_mcp_resume.sdk.server import REQUEST, STATEFUL
from otel_mcp_resume.sdk.server_http import HttpHooks
from otel_mcp_resume.sdk.server_transport import TransportHooks
from otel_mcp_resume.settings import Settings
from otel_mcp_resume.watch.calls import Tools
from otel_mcp_resume.watch.server_session import Session

__all__ = [
    "ANSWER",
    "ASKED",
    "BODY",
    "DATA",
    "SSE_HEAD",
    "STANDALONE",
    "Hooks",
    "Ids",
    "JSONRPCNotification",
    "JSONRPCRequest",
    "JSONRPCResponse",
    "Walk",
    "Wrapper",
    "finish",
    "item",
    "new_hooks",
]

Walk = Callable[[int], Coroutine[Any, Any, None]]
"""Walks a path so many times."""
Wrapper = Callable[..., Awaitable[Any]]
Ids = Callable[[int], str]
"""The id of the event with a number."""

DATA = '{"method":"notifications/message","params":{"level":"info","data":"row 17"},"jsonrpc":"2.0"}'
ANSWER = '{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"hello"}],"isError":false}}'
BODY = f"event: message\r\ndata: {DATA}\r\n\r\n".encode()
SSE_HEAD = (b"content-type", b"text/event-stream; charset=utf-8"), (b"mcp-session-id", b"S1")
ASKED = [
    (b"host", b"127.0.0.1:8000"),
    (b"accept", b"application/json, text/event-stream"),
    (b"content-type", b"application/json"),
    (b"mcp-protocol-version", b"2025-11-25"),
    (b"mcp-session-id", b"S1"),
]
STANDALONE = "_GET_stream"


class JSONRPCNotification:
    """Known to the hooks by its name, as the SDK's own is."""

    method = "notifications/message"


class JSONRPCRequest(SimpleNamespace):
    """See above."""


class JSONRPCResponse(SimpleNamespace):
    """See above."""


def finish(walk: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine that never waits."""
    try:
        walk.send(None)
    except StopIteration:
        return
    raise AssertionError("a fake has waited")


def item(message: Any, related: Any = None) -> Any:
    """A message as the SDK's streams carry it."""
    return SimpleNamespace(message=message, metadata=related and SimpleNamespace(related_request_id=related))


class Hooks:
    """What is put in place once in a process."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.transports = TransportHooks(runtime, STANDALONE)
        tools = Tools()
        managed, bare = HttpHooks(runtime, lambda _: tools), HttpHooks(runtime, lambda _: None)
        self.entries = (
            managed.wrapper(STATEFUL, _generation, lambda _, __: None),
            bare.wrapper(REQUEST, _generation, lambda transport, exchange: self.adopt(transport).serve(exchange)),
        )
        clients = ClientHooks(runtime)
        self.post = clients._exchange(POST, clients._post)
        self.closed = clients._closed
        self.send = HttpTap(runtime, "bench").wrapper()

    def adopt(self, transport: Any) -> Session:
        """Watches a server's transport from now on."""
        return self.transports.adopt(transport, "bench")


def _generation(_: Any) -> Generation:
    return Generation.STREAMABLE_HTTP


class BrokenHookError(BaseException):
    """What is measured does not work: it would be cheap, and the figure worthless. Nobody may swallow it."""


def _broken(hook: str, error: Exception) -> None:
    raise BrokenHookError(hook) from error


def new_hooks() -> Hooks:
    """Those of a process that has just begun."""
    return Hooks(replace(Plugin(Settings(), Providers()).runtime, guard=Guard(_broken)))

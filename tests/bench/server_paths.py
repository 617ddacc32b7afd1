"""A server with one session, driven by hand: what runs for each message that it writes, and for each call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

from otel_mcp_resume.sdk.server_transport import _Routing, observe_receive, observe_send
from tests.bench.walked import (
    ANSWER,
    ASKED,
    BODY,
    SSE_HEAD,
    STANDALONE,
    Hooks,
    Ids,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    Walk,
    Wrapper,
    item,
    new_hooks,
)

__all__ = ["Server", "scope", "server_call", "server_event"]


class Transport:
    """A server's transport, as far as the hooks look at it."""

    def __init__(self, store: Any = None) -> None:
        self.mcp_session_id = "S1"
        self.is_json_response_enabled = False
        self._request_streams: dict[str, Any] = {}
        self._event_store = store
        self._read_stream_writer: Any = None
        self._write_stream_reader: Any = None


class Server:
    """A server with one session, watched or not."""

    def __init__(self, hooks: Hooks | None, *, stored: bool, ids: Ids = str) -> None:
        self.transport = Transport(Store(ids) if stored else None)
        self.routed: list[Any] = []
        self.reader = SimpleNamespace(receive=self._receive)
        self.writer = SimpleNamespace(send=_nothing)
        self._hooks = hooks
        if hooks is None:
            return
        guard, report = hooks.runtime.guard, hooks.runtime.report
        session = hooks.adopt(self.transport)
        if not stored:
            observe_receive(self.reader, _Routing(session, STANDALONE, report).note, _raise)
        observe_send(self.writer, guard("bench", partial(hooks.transports._received, session)))

    def end(self) -> None:
        """The transport is over."""
        if self._hooks is not None:
            self._hooks.transports._ended("bench", self.transport)

    async def _receive(self) -> Any:
        return self.routed[0]

    async def handle(self, scope: Any, body: Callable[[Any], Awaitable[None]], send: Any = None) -> None:
        """A request passes the entry points of the SDK and ends in `body(send)`."""

        async def innermost(_: Any, __: Any, send: Any) -> None:
            await body(send)

        handler: Wrapper = innermost
        for entry in reversed(() if self._hooks is None else self._hooks.entries):
            handler = partial(_entered, entry, handler, self.transport)
        await handler(scope, _nothing_received, send or _nothing)


def _entered(entry: Wrapper, wrapped: Wrapper, instance: Any, *args: Any) -> Awaitable[Any]:
    return entry(wrapped, instance, args, {})


class Store:
    """An event store that keeps nothing."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._next = count(1)

    async def store_event(self, _: str, __: Any) -> str:
        return self._ids(next(self._next))


async def _nothing(_: Any) -> None:
    """A `send` that takes everything."""


async def _nothing_received() -> Any:
    return {"type": "http.request", "body": b"", "more_body": False}


def _raise(error: Exception) -> None:
    raise error


def scope(method: str) -> Any:
    """Of a request of the session."""
    return {
        "type": "http",
        "method": method,
        "path": "/mcp",
        "headers": ASKED,
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
    }


def server_event(
    *,
    watched: bool,
    stored: bool,
    hooks: Hooks | None = None,
    ids: Ids = str,
    in_the_end: Callable[[], object] = bool,
) -> Walk:
    """A notification on the open standalone stream: routed, maybe stored, written.

    `in_the_end` is called while the stream is still open.
    """
    server = Server((hooks or new_hooks()) if watched else None, stored=stored, ids=ids)
    notification = JSONRPCNotification()
    server.routed.append(item(notification))

    async def walk(times: int) -> None:
        async def body(send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": SSE_HEAD})
            server.transport._request_streams[STANDALONE] = ()
            store = server.transport._event_store
            for _ in range(times):
                if store is None:
                    await server.reader.receive()
                    written = BODY
                else:
                    event_id = await store.store_event(STANDALONE, notification)
                    written = b"id: %s\r\n%s" % (event_id.encode(), BODY)
                await send({"type": "http.response.body", "body": written, "more_body": True})
            in_the_end()

        await server.handle(scope("GET"), body)

    return walk


def server_call(*, watched: bool) -> Walk:
    """A tool call without a store: a POST, its message, its answer."""
    server = Server(new_hooks() if watched else None, stored=False)
    server.routed.append(None)
    numbers = count(1)

    async def body(send: Any) -> None:
        number = next(numbers)
        request = JSONRPCRequest(
            id=number, method="tools/call", params={"name": "echo", "arguments": {"text": "hello"}}
        )
        server.transport._request_streams[str(number)] = ()
        await server.writer.send(item(request))
        await send({"type": "http.response.start", "status": 200, "headers": SSE_HEAD})
        server.routed[0] = item(JSONRPCResponse(id=number, result={}))
        await server.reader.receive()
        written = f"event: message\r\ndata: {ANSWER % number}\r\n\r\n".encode()
        await send({"type": "http.response.body", "body": written, "more_body": True})
        del server.transport._request_streams[str(number)]
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def walk(times: int) -> None:
        for _ in range(times):
            await server.handle(scope("POST"), body)

    return walk

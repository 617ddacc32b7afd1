"""What runs for each message and for each call, driven by hand: the hooks between fakes that cost next to nothing.

Every path can be walked with our hooks and without them. No SDK is imported, so that a run under valgrind is short, and
no event loop runs: a fake never waits.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

from otel_mcp_resume.plugin import Plugin, Providers
from otel_mcp_resume.rules.terms import Generation
from otel_mcp_resume.sdk.client import POST, ClientHooks
from otel_mcp_resume.sdk.http_tap import HttpTap
from otel_mcp_resume.sdk.runtime import Runtime
from otel_mcp_resume.sdk.server import REQUEST, STATEFUL
from otel_mcp_resume.sdk.server_http import HttpHooks
from otel_mcp_resume.sdk.server_transport import TransportHooks, _Routing, observe_receive, observe_send
from otel_mcp_resume.settings import Settings
from otel_mcp_resume.watch.calls import Tools
from otel_mcp_resume.watch.server_session import Session

__all__ = [
    "ANSWER",
    "PATHS",
    "SSE_HEAD",
    "STANDALONE",
    "Client",
    "Hooks",
    "Server",
    "Walk",
    "client_event",
    "context",
    "finish",
    "new_hooks",
    "reference",
    "scope",
    "server_event",
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


class Transport:
    """A server's transport, as far as the hooks look at it."""

    def __init__(self, store: Any = None) -> None:
        self.mcp_session_id = "S1"
        self.is_json_response_enabled = False
        self._request_streams: dict[str, Any] = {}
        self._event_store = store
        self._read_stream_writer: Any = None
        self._write_stream_reader: Any = None


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


def new_hooks() -> Hooks:
    """Those of a process that has just begun."""
    return Hooks(Plugin(Settings(), Providers()).runtime)


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


class Headers(dict[str, str]):
    """As `httpx` has them."""

    def get_list(self, name: str) -> list[str]:
        return [self[name]] if name in self else []


class Client:
    """A client's transport with the HTTP client below, watched or not."""

    url = "http://127.0.0.1:8000/mcp"

    def __init__(self, hooks: Hooks | None) -> None:
        self.texts: Iterable[str] = ()
        self.arriving: Callable[[], AsyncIterator[str]] | None = None
        """Instead of `texts`, if they take their time."""
        self._hooks = hooks

    def end(self) -> None:
        """The transport is over."""
        if self._hooks is not None:
            self._hooks.closed(self)

    async def _send(self, _: Any) -> Any:
        async def aiter_text() -> AsyncIterator[str]:
            for text in self.texts:
                yield text

        headers = Headers({"content-type": "text/event-stream", "mcp-session-id": "S1"})
        return SimpleNamespace(
            status_code=200, headers=headers, aiter_text=self.arriving or aiter_text, aclose=_aclosed
        )

    async def _post(self, _: Any) -> None:
        asked = Headers({name.decode(): value.decode() for name, value in ASKED})
        request = SimpleNamespace(method="POST", url=self.url, headers=asked)
        hooks = self._hooks
        response = await (self._send(request) if hooks is None else hooks.send(self._send, None, (request,), {}))
        async for _ in response.aiter_text():
            pass
        await response.aclose()

    async def post(self, context: Any) -> None:
        """A request of the SDK, up to the end of its response."""
        hooks = self._hooks
        await (self._post(context) if hooks is None else hooks.post(self._post, self, (context,), {}))


async def _aclosed() -> None:
    pass


def context(number: int) -> Any:
    """Of a call, as the transport hands it to its methods."""
    params = {"name": "echo", "arguments": {"text": "hello"}}
    message = JSONRPCRequest(id=number, method="tools/call", params=params)
    return SimpleNamespace(client=None, session_message=SimpleNamespace(message=message))


def client_event(
    *,
    watched: bool,
    with_ids: bool,
    hooks: Hooks | None = None,
    ids: Ids = str,
    in_the_end: Callable[[], object] = bool,
) -> Walk:
    """A notification on the response to a call. `in_the_end` is called before the answer."""
    client = Client((hooks or new_hooks()) if watched else None)

    def texts(times: int) -> Iterator[str]:
        for number in range(times):
            event_id = f"id: {ids(number)}\r\n" if with_ids else ""
            yield f"{event_id}event: message\r\ndata: {DATA}\r\n\r\n"
        in_the_end()
        yield f"event: message\r\ndata: {ANSWER % 1}\r\n\r\n"

    async def walk(times: int) -> None:
        client.texts = texts(times)
        await client.post(context(1))

    return walk


def client_call(*, watched: bool) -> Walk:
    """A tool call that is answered at once."""
    client = Client(new_hooks() if watched else None)

    async def walk(times: int) -> None:
        for number in range(times):
            client.texts = [f"event: message\r\ndata: {ANSWER % number}\r\n\r\n"]
            await client.post(context(number))

    return walk


PATHS: dict[str, tuple[Callable[..., Walk], int]] = {
    "server, event": (partial(server_event, stored=False), 1500),
    "server, event with store": (partial(server_event, stored=True), 1500),
    "client, event": (partial(client_event, with_ids=False), 1500),
    "client, event with id": (partial(client_event, with_ids=True), 1500),
    "server, call": (server_call, 150),
    "client, call": (client_call, 150),
}
"""By title: what makes the path, and how often it is walked at once."""


def reference() -> Walk:
    """Work of the same kind that is none of ours: what is counted is told in units of it."""

    class Thing:
        __slots__ = ("seen", "total")

        def __init__(self) -> None:
            self.seen: dict[str, int] = {}
            self.total = 0

        def note(self, name: str) -> int:
            self.total += 1
            self.seen[name] = self.total
            return self.total

    async def told(thing: Thing, number: int) -> bool:
        try:
            return thing.note(str(number)) > 0 and BODY.find(b"\ndata: ") > 0
        except ValueError:
            return False

    async def walk(times: int) -> None:
        thing = Thing()
        for number in range(times):
            await told(thing, number)

    return walk

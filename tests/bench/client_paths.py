"""A client's transport with the HTTP client below, driven by hand: what runs for each message, and for each call."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

from tests.bench.walked import ANSWER, ASKED, DATA, Hooks, Ids, JSONRPCRequest, Walk, new_hooks

__all__ = ["Client", "client_call", "client_event", "context"]


HTTP: Any = importlib.import_module("httpx2" if find_spec("httpx2") else "httpx")
"""Looking into a head is a good part of what a call costs, so heads are real."""
ANSWERED = [
    (b"date", b"Mon, 30 Nov 2026 12:00:00 GMT"),
    (b"server", b"uvicorn"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"content-type", b"text/event-stream"),
    (b"mcp-session-id", b"S1"),
    (b"transfer-encoding", b"chunked"),
]


class Url(str):
    """As `httpx` has them, as far as it is looked at."""

    __slots__ = ()
    userinfo = b""


class Client:
    """A client's transport with the HTTP client below, watched or not."""

    url = Url("http://127.0.0.1:8000/mcp")

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

        return SimpleNamespace(
            status_code=200, headers=HTTP.Headers(ANSWERED), aiter_text=self.arriving or aiter_text, aclose=_aclosed
        )

    async def _post(self, _: Any) -> None:
        request = SimpleNamespace(method="POST", url=self.url, headers=HTTP.Headers(ASKED))
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

"""Many streams that are open at the same time, and many sessions one after the other, driven by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from typing import Any

from typing_extensions import Self

from tests.bench.client_paths import Client, context
from tests.bench.server_paths import Server, scope
from tests.bench.walked import ANSWER, SSE_HEAD, STANDALONE, finish, new_hooks

__all__ = ["Crowd", "one_session"]


class _Pause:
    """Waits once, until its coroutine is sent on."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Crowd:
    """Idle streams, each of a session of its own."""

    def __init__(self, side: str, *, watched: bool) -> None:
        self.hooks = new_hooks()
        self._side = side
        self._watched = watched
        self._open: list[Coroutine[Any, Any, None]] = []

    def __enter__(self) -> Self:
        return self

    def open(self, count: int) -> None:
        """Opens so many, after one more that brings into being what all of them share."""
        for _ in range(count):
            coroutine = _served(self) if self._side == "server" else _followed(self)
            coroutine.send(None)
            self._open.append(coroutine)

    def __exit__(self, *_: object) -> None:
        for coroutine in self._open:
            finish(coroutine)
        self._open.clear()

    def server(self) -> Server:
        """Of a session of its own."""
        return Server(self.hooks if self._watched else None, stored=True)

    def client(self) -> Client:
        """With a transport of its own."""
        return Client(self.hooks if self._watched else None)


async def _served(crowd: Crowd) -> None:
    server = crowd.server()

    async def body(send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": SSE_HEAD})
        server.transport._request_streams[STANDALONE] = ()
        await _Pause()

    await server.handle(scope("GET"), body)
    server.end()


async def _followed(crowd: Crowd) -> None:
    client = crowd.client()

    async def texts() -> AsyncIterator[str]:
        await _Pause()
        yield f"event: message\r\ndata: {ANSWER % 1}\r\n\r\n"

    client.arriving = texts
    await client.post(context(1))
    client.end()


def one_session(side: str, *, watched: bool) -> Callable[[int], None]:
    """Makes so many sessions come and go: one stream each, with an event."""
    hooks = new_hooks() if watched else None

    def run(count: int) -> None:
        for _ in range(count):
            if side == "server":
                _one_served(Server(hooks, stored=True))
            else:
                client = Client(hooks)
                client.texts = [f"id: 1\r\nevent: message\r\ndata: {ANSWER % 1}\r\n\r\n"]
                finish(client.post(context(1)))
                client.end()

    return run


def _one_served(server: Server) -> None:
    async def body(send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": SSE_HEAD})
        server.transport._request_streams[STANDALONE] = ()
        await server.transport._event_store.store_event(STANDALONE, None)
        written = b"id: 1\r\nevent: message\r\ndata: {}\r\n\r\n"
        await send({"type": "http.response.body", "body": written, "more_body": True})

    finish(server.handle(scope("GET"), body))
    server.end()

"""A small HTTP/1.1 proxy between client and server: it logs the wire, cuts connections, and holds GETs back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import Any

from tests.peers.wirelog import Exchange, WireLog, read_event

__all__ = ["Proxy"]

HOST = "127.0.0.1"
BROKEN = (ConnectionError, asyncio.IncompleteReadError, OSError)


@dataclass
class _Head:
    first: str
    headers: dict[str, str]
    raw: bytes


@dataclass
class _Relay:
    """A client's connection while one of its exchanges is under way."""

    exchange: Exchange
    task: asyncio.Task[None]


class _ClientReader(asyncio.StreamReader):
    """Tells when the client has gone, without reading what it may have sent already."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.gone.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.gone.set()


class Proxy:
    """`upstream` may be changed while it runs: the next connection goes to the new one."""

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self.log = WireLog()
        self._relays: list[_Relay] = []
        self._gets_may_pass = asyncio.Event()
        self._gets_may_pass.set()
        self._allowed: int | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        """The URL under which clients reach the server."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: asyncio.StreamReaderProtocol(_ClientReader(), self._accept), HOST, 0)
        try:
            yield f"http://{HOST}:{server.sockets[0].getsockname()[1]}/mcp"
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def hold_gets(self) -> None:
        """GETs are read and logged from now on, and go no further."""
        self._gets_may_pass.clear()

    def let_gets_pass(self, count: int | None = None) -> None:
        """So many of them, if a number is given; later ones are held again."""
        self._allowed = count
        self._gets_may_pass.set()

    def cut(self, exchange: Exchange) -> None:
        """Ends both connections of an exchange that is under way."""
        for relay in self._relays:
            if relay.exchange is exchange:
                exchange.end = "cut"
                relay.task.cancel()
                return
        raise AssertionError(f"#{exchange.number} is over")

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert isinstance(reader, _ClientReader)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._converse(reader, writer)
        except (*BROKEN, asyncio.CancelledError):
            pass  # one side is gone, or was cut: so is the other
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _converse(self, reader: _ClientReader, writer: asyncio.StreamWriter) -> None:
        """One client connection, and the server's that belongs to it."""
        task = asyncio.current_task()
        assert task is not None
        server_writer: asyncio.StreamWriter | None = None
        relay: _Relay | None = None
        try:
            while (head := await _head(reader)) is not None:
                body = await reader.readexactly(int(head.headers.get("content-length", "0")))
                exchange = self.log.begin(head.first.split()[0], head.headers, body)
                relay = _Relay(exchange, task)
                self._relays.append(relay)
                await self._pass(exchange, reader)
                if server_writer is None:
                    server_reader, server_writer = await asyncio.open_connection(HOST, self.upstream)
                server_writer.write(head.raw + body)
                await _until_either_ends(reader, _answer(exchange, server_reader, writer), exchange)
                self._relays.remove(relay)
                relay = None
        finally:
            if relay is not None:
                self._relays.remove(relay)
            if server_writer is not None:
                server_writer.transport.abort()

    async def _pass(self, exchange: Exchange, reader: _ClientReader) -> None:
        if exchange.method != "GET":
            return
        await _until_either_ends(reader, self._gets_may_pass.wait(), exchange)
        if self._allowed is not None:
            self._allowed -= 1
            if self._allowed == 0:
                self._gets_may_pass.clear()


async def _until_either_ends(client: _ClientReader, work: Coroutine[Any, Any, object], exchange: Exchange) -> None:
    """Raises `ConnectionError` when the client goes first."""
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(client.gone.wait())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            exchange.end = "left by the client"
            raise ConnectionError
        await working
    finally:
        for each in (working, leaving):
            each.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _head(reader: asyncio.StreamReader) -> _Head | None:
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = raw.decode("latin-1").strip().split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return _Head(first, headers, raw)


async def _answer(exchange: Exchange, server: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
    """Passes one response on, byte by byte as it is."""
    try:
        head = await _head(server)
        if head is None:
            raise ConnectionError
        exchange.status = int(head.first.split()[1])
        exchange.answered_session = head.headers.get("mcp-session-id")
        exchange.is_stream = head.headers.get("content-type", "").startswith("text/event-stream")
        client.write(head.raw)
        if head.headers.get("transfer-encoding") == "chunked":
            await _chunks(exchange, server, client)
        else:
            client.write(await server.readexactly(int(head.headers.get("content-length", "0"))))
        await client.drain()
    except BROKEN:
        exchange.end = "cut by the server"
        raise
    exchange.end = "over"


async def _chunks(exchange: Exchange, server: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
    text = ""
    while True:
        size = await server.readuntil(b"\r\n")
        chunk = await server.readexactly(int(size, 16) + 2)
        text += chunk[:-2].decode().replace("\r\n", "\n")
        *blocks, text = text.split("\n\n")
        for block in blocks:
            read_event(exchange, block)
        client.write(size + chunk)
        if int(size, 16) == 0:
            return

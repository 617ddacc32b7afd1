"""A relay between the two sides of a case, which keeps every byte that passes."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

from .driven.steps import HOST
from .sockets import abort

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

__all__ = ["Passed", "Relay", "normalised"]

QUIET = 0.7
"""Seconds without a byte after which a play is over."""
PATIENCE = 4.0
"""Seconds to wait for that; a client that re-opens its stream for ever is never quiet."""

_CHANGING = (
    (re.compile(rb"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"), b"<uuid>"),
    (re.compile(rb"(?<=127\.0\.0\.1:)\d+"), b"<port>"),
    (re.compile(rb"(?im)^date: .*$"), b"date: <now>"),
    (re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?"), b"<now>"),
    (re.compile(rb"0x[0-9a-f]+"), b"<address>"),
    (re.compile(rb"'?127\.0\.0\.1'?, \d+"), b"<peer>"),
)
_REQUEST = re.compile(rb"(?=(?:GET|POST|DELETE) /\S* HTTP/1\.1\r\n)")
_ANSWER = re.compile(rb"(?=HTTP/1\.1 \d{3} )")


def normalised(data: bytes) -> bytes:
    """Without what is random in every run: ids that the SDK draws, ports, dates, addresses in memory."""
    for pattern, instead in _CHANGING:
        data = pattern.sub(instead, data)
    return data


@dataclass
class Passed:
    """One connection: what either side wrote, HTTP's own chunks included, and who ended it."""

    sent: bytearray = field(default_factory=bytearray)
    received: bytearray = field(default_factory=bytearray)

    @property
    def exchanges(self) -> list[str]:
        """Each request and its answer. Which of its connections a client takes for one is chance."""
        requests = _REQUEST.split(normalised(bytes(self.sent)))
        answers = _ANSWER.split(normalised(bytes(self.received)))
        return [f"{asked!r} -> {answer!r}" for asked, answer in zip_longest(requests, answers) if asked or answer]


class Relay:
    """Passes everything on, as it comes, to one port."""

    def __init__(self) -> None:
        self.connections: list[Passed] = []
        self.was_quiet = False
        self._last = time.monotonic()
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def to(self, port: int) -> AsyncGenerator[int, None]:
        """Relays to `port`; gives the port to connect to instead."""
        self._port = port
        server = await asyncio.start_server(self._accept, HOST, 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def settled(self) -> None:
        """Waits until it has become quiet, for a while."""
        limit = time.monotonic() + PATIENCE
        while not self.was_quiet and time.monotonic() < limit:
            await asyncio.sleep(QUIET / 4)
            self.was_quiet = time.monotonic() - self._last > QUIET

    @property
    def passed(self) -> Counter[str]:
        """Every exchange, as it would be with the same ids. Those beside each other begin in any order."""
        return Counter(exchange for connection in self.connections for exchange in connection.exchanges)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Not a coroutine: the task that asyncio makes of one reports its cancellation as an error.
        task = asyncio.ensure_future(self._relayed(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _relayed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Passed()
        self.connections.append(connection)
        with contextlib.suppress(OSError):  # a reset by one side is one for the other
            await self._join(reader, writer, connection)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: Passed) -> None:
        ends, pumps, is_whole = [writer], list[asyncio.Future[None]](), False
        try:
            back, forth = await asyncio.open_connection(HOST, self._port)
            ends.append(forth)
            pumps.append(asyncio.ensure_future(self._pump(reader, forth, connection.sent)))
            pumps.append(asyncio.ensure_future(self._pump(back, writer, connection.received)))
            await asyncio.gather(*pumps)
            is_whole = True
        finally:
            for pump in pumps:
                pump.cancel()
            for end in ends:
                if not is_whole and not end.transport.is_closing():
                    with contextlib.suppress(OSError):
                        abort(end)
                end.close()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, kept: bytearray) -> None:
        while data := await source.read(65536):
            self._last = time.monotonic()
            kept += data
            sink.write(data)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()

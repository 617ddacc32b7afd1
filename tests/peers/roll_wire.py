"""The test's own log of the wire: a relay in front of the balancer that reads the heads of what passes."""

from __future__ import annotations

import asyncio
import math
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field

__all__ = ["Get", "Relay"]

MOMENT = 1.0
"""Seconds that an answer may take from here to the client's code on a busy machine."""

_REQUEST = re.compile(rb"(GET|POST|DELETE) \S+ HTTP/1\.1\r\n")
_RESPONSE = re.compile(rb"HTTP/1\.1 (\d{3})")
_HEADER = re.compile(rb"(?im)^(mcp-session-id|last-event-id):[ \t]*([^\r\n]*)")


def _headers(data: bytes) -> dict[bytes, str]:
    return {name.lower(): value.decode() for name, value in _HEADER.findall(data.partition(b"\r\n\r\n")[0])}


@dataclass
class Get:
    """One GET of a client, and what it got."""

    session: str
    token: str
    status: int = 0
    answered: str = ""
    answered_at: float = 0.0


@dataclass
class Relay:
    """Changes no byte."""

    target: int
    gets: list[Get] = field(default_factory=list[Get])
    """In the order of their answers."""
    unanswered: list[Get] = field(default_factory=list[Get])
    ends: dict[str, float] = field(default_factory=dict[str, float])
    """When a client began to leave a session: it sends DELETE."""
    port: int = 0

    def is_left(self, get: Get) -> bool:
        """The client was on its way out about when the answer came, and need not have taken notice of it."""
        return self.ends.get(get.session, math.inf) < get.answered_at + MOMENT

    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._relay(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            answers, requests = await asyncio.open_connection("127.0.0.1", self.target)
            ends.append(requests)
            await self._pass_on(reader, writer, answers, requests)
        except OSError:
            pass  # one side is gone
        finally:
            for end in ends:
                end.close()
            for end in ends:
                with suppress(OSError):
                    await end.wait_closed()

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        requests: asyncio.StreamWriter,
    ) -> None:
        """Until one side has hung up."""
        under_way: list[Get | None] = [None]

        async def up() -> None:
            while data := await reader.read(65536):
                if start := _REQUEST.match(data):
                    under_way[0] = self._asked(start[1], _headers(data))
                requests.write(data)
                await requests.drain()

        async def down() -> None:
            while data := await answers.read(65536):
                get, start = under_way[0], _RESPONSE.match(data)
                if get is not None and start and not get.status:
                    self._answered(get, int(start[1]), _headers(data))
                writer.write(data)
                await writer.drain()

        pumps = [asyncio.ensure_future(up()), asyncio.ensure_future(down())]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    def _asked(self, method: bytes, headers: dict[bytes, str]) -> Get | None:
        session = headers.get(b"mcp-session-id", "")
        if method == b"DELETE":
            self.ends.setdefault(session, time.monotonic())
        if method != b"GET":
            return None
        get = Get(session, headers.get(b"last-event-id", ""))
        self.unanswered.append(get)
        return get

    def _answered(self, get: Get, status: int, headers: dict[bytes, str]) -> None:
        get.status, get.answered = status, headers.get(b"mcp-session-id", "")
        get.answered_at = time.monotonic()
        self.unanswered = [each for each in self.unanswered if each is not get]
        self.gets.append(get)

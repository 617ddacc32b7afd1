"""The test's own log of the wire: a relay in front of the balancer that reads the heads of what passes.

It can hold re-openings back, so that the test ends an instance or a client at a moment when none is under way: then
every one either got its answer or never left, and there is no doubt which of them have to be counted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

__all__ = ["Get", "Relay"]

_REQUEST = re.compile(rb"(GET|POST|DELETE) \S+ HTTP/1\.1\r\n")
_RESPONSE = re.compile(rb"HTTP/1\.1 (\d{3})")
_HEADER = re.compile(rb"(?im)^(mcp-session-id|last-event-id|x-client):[ \t]*([^\r\n]*)")


def _headers(data: bytes) -> dict[bytes, str]:
    return {name.lower(): value.decode() for name, value in _HEADER.findall(data.partition(b"\r\n\r\n")[0])}


@dataclass
class Get:
    """One GET of a client, and what it got."""

    client: int
    session: str
    token: str
    status: int = 0
    """0 if the connection broke before an answer."""
    answered: str = ""


@dataclass
class Relay:
    """Changes no byte."""

    target: int
    gets: list[Get] = field(default_factory=list[Get])
    """In the order of their answers."""
    under_way: list[Get] = field(default_factory=list[Get])
    opened: set[str] = field(default_factory=set[str])
    """Sessions whose standalone stream was open once."""
    carried: bytearray = field(default_factory=bytearray)
    """All that went to clients."""
    port: int = 0
    _gate: asyncio.Future[bool] | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    @asynccontextmanager
    async def up(self) -> AsyncIterator[Relay]:
        """It listens in the block."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = int(server.sockets[0].getsockname()[1])
        try:
            yield self
        finally:
            server.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def hold(self) -> None:
        """Re-openings wait from now on. Those that have passed are under way."""
        self._gate = self._gate or asyncio.get_running_loop().create_future()

    def let_go(self, *, pass_on: bool = True) -> None:
        """Those that were held back pass, or are dropped because their clients have gone."""
        if self._gate is not None:
            self._gate.set_result(pass_on)
            self._gate = None

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
        current: list[Get | None] = [None]

        async def up() -> None:
            while data := await reader.read(65536):
                if start := _REQUEST.match(data):
                    get = _asked(start[1], _headers(data))
                    if get is not None:
                        if not await self._may_pass(get) or reader.at_eof():
                            return
                        self.under_way.append(get)
                    current[0] = get
                requests.write(data)
                await requests.drain()

        async def down() -> None:
            while data := await answers.read(65536):
                get, start = current[0], _RESPONSE.match(data)
                if get is not None and start and not get.status:
                    self._answered(get, int(start[1]), _headers(data))
                self.carried += data
                writer.write(data)
                await writer.drain()

        pumps = [asyncio.ensure_future(up()), asyncio.ensure_future(down())]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            if current[0] in self.under_way:
                self._answered(current[0], 0, {})

    async def _may_pass(self, get: Get) -> bool:
        is_free = not (get.token or get.session in self.opened)
        if self._gate is None or is_free:
            return True
        return await asyncio.shield(self._gate)

    def _answered(self, get: Get, status: int, headers: dict[bytes, str]) -> None:
        get.status, get.answered = status, headers.get(b"mcp-session-id", "")
        self.under_way = [each for each in self.under_way if each is not get]
        self.gets.append(get)
        if 200 <= status < 300:
            self.opened.add(get.session)


def _asked(method: bytes, headers: dict[bytes, str]) -> Get | None:
    if method != b"GET":
        return None
    return Get(
        int(headers.get(b"x-client", "-1")), headers.get(b"mcp-session-id", ""), headers.get(b"last-event-id", "")
    )

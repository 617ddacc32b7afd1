"""The network between a client and its servers: a balancer that can change its mind, cut, and be away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from otel_mcp_resume.cli.demo.wire import Exchange, Wire

__all__ = ["Gate"]

HOST = "127.0.0.1"


class Gate:
    """Relays TCP connections to one server. It changes no byte of what it relays."""

    def __init__(self, log: Callable[[str], None]) -> None:
        """`log` takes a line for everything that passes."""
        self._log = log
        self._relays: dict[asyncio.Task[None], Wire] = {}
        self._target = 0
        self._away = False
        self._waiting = list[asyncio.Future[Exchange]]()

    async def open(self) -> int:
        """Lets clients in, at the port of the loopback that it returns. `route` says where they get to."""
        self._server = await asyncio.start_server(self._accept, HOST, 0)
        return int(self._server.sockets[0].getsockname()[1])

    def route(self, target: int) -> None:
        """New connections go to another server. Those that are open stay where they are."""
        self._target = target

    def leave(self) -> None:
        """Cuts everything and lets nobody in."""
        self._away = True
        self.cut()

    def come_back(self) -> None:
        """Lets clients in again."""
        self._away = False

    def cut(self, method: str = "") -> None:
        """Breaks the connections whose request at the moment is of `method`, or all, in the middle of things."""
        for task, wire in self._relays.items():
            if not method or (wire.exchange and wire.exchange.method == method):
                task.cancel()

    async def close(self) -> None:
        """Ends the gate and every connection through it."""
        self._server.close()
        self.leave()
        await asyncio.gather(*self._relays, return_exceptions=True)

    async def next_resumption(self) -> Exchange:
        """Waits until a GET that shows a token is answered: on any other request a token resumes nothing."""
        waiting: asyncio.Future[Exchange] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        return await waiting

    def _answered(self, exchange: Exchange) -> None:
        if exchange.token and exchange.method == "GET":
            for waiting in self._waiting:
                if not waiting.done():
                    waiting.set_result(exchange)
            self._waiting.clear()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = Wire(self._log, self._answered)
        task = asyncio.ensure_future(self._relay(reader, writer, wire))
        self._relays[task] = wire
        task.add_done_callback(lambda task: self._relays.pop(task, None))

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wire: Wire) -> None:
        ends, pumps, broken = [writer], list[asyncio.Future[None]](), True
        try:
            if not self._away:
                answers, requests = await asyncio.open_connection(HOST, self._target)
                ends.append(requests)
                pumps.append(asyncio.ensure_future(_pump(reader, requests, wire.sent)))
                pumps.append(asyncio.ensure_future(_pump(answers, writer, wire.received)))
                await asyncio.gather(*pumps)
                broken = False
        except OSError:
            pass  # one side broke off; the other is told in the same way
        finally:
            for pump in pumps:
                pump.cancel()
            for end in ends:
                end.transport.abort() if broken else end.close()
            wire.ended()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, note: Callable[[bytes], None]) -> None:
    while data := await source.read(65536):
        note(data)
        sink.write(data)
        await sink.drain()
    if sink.can_write_eof():
        sink.write_eof()

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from otel_mcp_resume.cli.demo.gate import Gate


class Peer:
    """A server that answers every request with its name for a session, and keeps the connection."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._serving: set[asyncio.Task[Any]] = set()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._serving.add(task)
        with suppress(ConnectionError):
            while line := await reader.readline():
                if line == b"\r\n":
                    writer.write(f"HTTP/1.1 200 OK\r\nMcp-Session-Id: {self._name}\r\n\r\nid: 1\n\n".encode())
                    await writer.drain()
        await hang_up(writer)

    async def close(self) -> None:
        """Waits until everybody has left."""
        self._server.close()
        await asyncio.gather(*self._serving)


@dataclass
class Street:
    """A gate with two peers behind it, and everybody who came."""

    gate: Gate
    port: int
    old: int
    new: int
    opened: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])

    async def ask(self, method: str = "GET", token: str = "") -> tuple[asyncio.StreamReader, str]:
        """Opens a connection and makes a request. What is left to read, and the session that the answer names."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.opened.append(writer)
        shown = f"Last-Event-ID: {token}\r\n" if token else ""
        writer.write(f"{method} /mcp HTTP/1.1\r\nMcp-Session-Id: S\r\n{shown}\r\n".encode())
        answer = await reader.readuntil(b"id: 1\n\n")
        return reader, answer.partition(b"Session-Id: ")[2].split()[0].decode()


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


def play(steps: Callable[[Street], Awaitable[None]]) -> list[str]:
    """Runs the steps. What the gate logged."""
    log: list[str] = []

    async def run() -> None:
        gate, old, new = Gate(log.append), Peer("old"), Peer("new")
        street = Street(gate, await gate.open(), await old.start(), await new.start())
        gate.route(street.old)
        await asyncio.wait_for(steps(street), 20)
        await gate.close()
        for writer in street.opened:
            await hang_up(writer)
        await old.close()
        await new.close()

    asyncio.run(run())
    return log


async def is_cut(reader: asyncio.StreamReader) -> bool:
    try:
        rest = await asyncio.wait_for(reader.read(), 0.5)
    except asyncio.TimeoutError:
        return False
    except ConnectionError:
        return True
    return rest == b""


def test_a_new_route_is_for_new_connections_only() -> None:
    async def steps(street: Street) -> None:
        first, session = await street.ask()
        assert session == "old"
        street.gate.route(street.new)
        assert (await street.ask())[1] == "new"
        assert not await is_cut(first)

    play(steps)


def test_cutting_hits_the_connections_of_one_method_or_all() -> None:
    async def steps(street: Street) -> None:
        stream, _ = await street.ask("GET")
        call, _ = await street.ask("POST")
        street.gate.cut("POST")
        assert await is_cut(call)
        assert not await is_cut(stream)
        street.gate.cut()
        assert await is_cut(stream)

    play(steps)


def test_nobody_gets_in_while_it_is_away() -> None:
    async def steps(street: Street) -> None:
        street.gate.leave()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await street.ask()
        street.gate.come_back()
        assert (await street.ask())[1] == "old"

    play(steps)


def test_a_server_that_is_not_there_costs_the_client_its_connection_and_nothing_else() -> None:
    async def steps(street: Street) -> None:
        street.gate.route(1)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await street.ask()
        street.gate.route(street.old)
        assert (await street.ask())[1] == "old"

    play(steps)


def test_it_tells_of_the_next_request_that_shows_a_token() -> None:
    async def steps(street: Street) -> None:
        next_one = asyncio.ensure_future(street.gate.next_resumption())
        await street.ask()
        await street.ask("POST", token="4820")  # resumes nothing
        assert not next_one.done()
        await street.ask(token="4821")
        exchange = await next_one
        assert (exchange.token, exchange.session, exchange.status) == ("4821", "S", 200)
        assert (exchange.answered_session, exchange.ids) == ("old", ["1"])

    log = play(steps)
    assert "GET, session S, Last-Event-ID 4821 -> 200, session old" in log

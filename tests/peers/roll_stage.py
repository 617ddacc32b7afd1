"""What a play of the roll needs: instances, clients, and what each of them and the wire say about it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from tests.peers.balancer import Way, balancing, free_port
from tests.peers.roll_wire import Relay

__all__ = [
    "Attempt",
    "Fleet",
    "Nursery",
    "arrivals",
    "attempts_in",
    "lines",
    "re_openings",
    "table",
    "until",
    "verdicts_in",
]

ROOT = Path(__file__).resolve().parents[2]
PROOF_TIMEOUT = 2.0
LIMIT = 80.0

Attempt = tuple[str, str, int]
"""The session that was answered under, or else asked for; the token; the status."""


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def until(holds: Callable[[], object], what: str, limit: float = LIMIT) -> None:
    for _ in range(int(limit * 20)):
        if holds():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"not within {limit} s: {what}")


def attempts_in(records: list[dict[str, Any]]) -> Counter[Attempt]:
    """What the plugin counted. Giving up is no request."""
    return Counter(
        (each.get("mcp.session.id", ""), each.get("mcp.resume.token", ""), each.get("http.response.status_code", 0))
        for each in records
        if each["event"] == "mcp_resume.attempt" and each["mcp.resume.outcome"] != "abandoned"
    )


def verdicts_in(records: list[dict[str, Any]]) -> Counter[str]:
    return Counter(
        f"{each['mcp.resume.outcome']}, {each['mcp.resume.reason']}"
        if each["event"] == "mcp_resume.attempt"
        else f"violation: {each['mcp.resume.rule']}"
        for each in records
    )


def re_openings(relay: Relay) -> tuple[Counter[Attempt], Counter[Attempt]]:
    """The GETs that re-open a stream, by the log in front of the balancer; and those of clients that were leaving."""
    certain, left, opened = Counter[Attempt](), Counter[Attempt](), set[str]()
    for get in relay.gets:
        if get.token or get.session in opened:
            key = (get.answered or get.session, get.token, get.status)
            (left if relay.is_left(get) else certain)[key] += 1
        if 200 <= get.status < 300:
            opened.add(get.session)
    left.update((get.session, get.token, 0) for get in relay.unanswered if get.token or get.session in opened)
    return certain, left


def arrivals(requests: list[dict[str, Any]]) -> Counter[Attempt]:
    """The same for what reached one instance, which knows nothing of what came before it was there."""
    found, opened = Counter[Attempt](), set[str]()
    for each in requests:
        if each["method"] != "GET":
            continue
        is_open = 200 <= each["status"] < 300
        if each["token"] or (is_open and each["session"] in opened):
            found[each["answered"] or each["session"], each["token"], each["status"]] += 1
        if is_open:
            opened.add(each["session"])
    return found


class Nursery:
    """The process that instances are forked from."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def up(self) -> AsyncIterator[Nursery]:
        self._process = await _process("tests.peers.roll_instance")
        try:
            yield self
        finally:
            await _end(self._process)

    async def order(self, *words: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        async with self._turn:
            self._process.stdin.write(f"{' '.join(map(str, words))}\n".encode())
            await asyncio.wait_for(self._process.stdout.readline(), 60)


class Fleet:
    """Two instances behind a balancer, replaced when asked to."""

    def __init__(self, nursery: Nursery, home: Path, kind: str) -> None:
        self.home = home
        self.started: list[str] = []
        """Every instance that there was."""
        self._nursery = nursery
        self._ports = [free_port(), free_port()]
        self._kind = kind
        self._names = ["", ""]

    @asynccontextmanager
    async def up(self, way: Way) -> AsyncIterator[int]:
        """The port of the balancer."""
        self.home.mkdir()
        for place in range(2):
            await self.replace(place)
        try:
            with balancing(self.home / "nginx", way, self._ports) as port:
                await until(lambda: _listens(port), "nginx listens")
                yield port
        finally:
            for name in filter(None, self._names):
                await self._nursery.order("kill", self.home / name)

    async def replace(self, place: int, *, hard: bool = False) -> None:
        """One instance ends, and another one takes its port."""
        if self._names[place]:
            await self.settled(self._names[place])
            await self._nursery.order("kill" if hard else "stop", self.home / self._names[place])
        self._names[place] = f"{'ab'[place]}{len(self.started)}"
        self.started.append(self._names[place])
        await self._nursery.order("start", self.home / self._names[place], self._ports[place], self._kind)
        await until(lambda: _listens(self._ports[place]), f"{self._names[place]} listens")

    async def all_settled(self) -> None:
        for name in self._names:
            await self.settled(name)

    async def settled(self, name: str) -> None:
        """Every attempt that reached an instance has its verdict, and there are no others."""
        try:
            await until(lambda: self.missing_of(name) == ({}, {}), "settled")
        except AssertionError:
            raise AssertionError(f"{name}: not counted, and only counted: {self.missing_of(name)}") from None

    def missing_of(self, name: str) -> tuple[dict[Attempt, int], dict[Attempt, int]]:
        """Attempts that an instance did not count, and what it counted beyond them."""
        wire = arrivals(lines(self.home / f"{name}.wire"))
        counted = attempts_in(lines(self.home / f"{name}.verdicts"))
        return dict(wire - counted), dict(counted - wire)

    @asynccontextmanager
    async def crowd(self, port: int, style: str) -> AsyncIterator[tuple[Relay, Callable[[], int]]]:
        """The clients, until the block is left; the relay in front of them, and how many hold a session."""
        relay = Relay(port)
        await relay.open()
        url, log = f"http://127.0.0.1:{relay.port}/mcp", str(self.home / "clients.verdicts")
        process = await _process("tests.peers.roll_clients", url, style, log)
        holding = [0]

        async def read() -> None:
            assert process.stdout is not None
            async for line in process.stdout:
                with suppress(ValueError):
                    holding[0] = int(line)

        reader = asyncio.create_task(read())
        try:
            yield relay, lambda: holding[0]
        finally:
            await _end(process)
            await reader
            await relay.close()


async def _process(module: str, *arguments: str) -> asyncio.subprocess.Process:
    ours = ("OTEL_", "PROMETHEUS_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "ignore", "-m", module, *arguments),
        cwd=ROOT,
        env={
            **environ,
            "OTEL_MCP_RESUME": "1",
            "OTEL_MCP_RESUME_METRICS": "none",
            "OTEL_MCP_RESUME_PROOF_TIMEOUT": str(PROOF_TIMEOUT),
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        },
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )


async def _end(process: asyncio.subprocess.Process) -> None:
    """The end of its orders is its end, by force if need be."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), LIMIT)
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def table(rows: Iterator[tuple[str, ...]]) -> str:
    """Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)

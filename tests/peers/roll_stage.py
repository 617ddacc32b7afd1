"""The processes of a roll: instances behind a balancer, clients in front of it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.peers.balancer import Way, balancing, free_port
from tests.peers.roll_logs import Attempt, arrivals, attempts_in, lines, streams_open

__all__ = ["Fleet", "Helper", "until"]

ROOT = Path(__file__).resolve().parents[2]
PROOF_TIMEOUT = 2
"""Seconds."""
LIMIT = 60.0
"""Seconds for what takes one where nothing else runs."""
GRACE = 8.0
"""Seconds that a process has to end: more than it gives itself."""


async def until(holds: Callable[[], object], what: Callable[[], str] | str) -> None:
    """Waits until it does. Raises `AssertionError` with `what` if it never does."""
    for _ in range(int(LIMIT * 20)):
        if holds():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"not within {LIMIT} s: {what if isinstance(what, str) else what()}")


class Helper:
    """A process that takes orders."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    @asynccontextmanager
    async def up(cls, module: str, *arguments: object) -> AsyncIterator[Helper]:
        """Ends with the block, and everything that it started, by force if need be."""
        ours = ("OTEL_", "PROMETHEUS_")
        environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "ignore", "-m", module, *map(str, arguments)),
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
            start_new_session=True,
        )
        try:
            yield cls(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), GRACE)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def order(self, *words: object) -> str:
        """Its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{' '.join(map(str, words))}\n".encode())
        answer = await asyncio.wait_for(self._process.stdout.readline(), LIMIT)
        assert answer, f"ended instead: {words}"
        return answer.decode().strip()


class Fleet:
    """Two instances behind a balancer, replaced when asked to."""

    def __init__(self, nursery: Helper, home: Path, kind: str) -> None:
        self._nursery = nursery
        self._home = home
        self._ports = [free_port(), free_port()]
        self._kind = kind
        self._names = ["", ""]
        self.started: list[Path] = []
        """The logs of every instance that there was, without their suffixes."""

    @asynccontextmanager
    async def up(self, way: Way) -> AsyncIterator[int]:
        """The port of the balancer."""
        self._home.mkdir()
        for place in range(2):
            await self.start(place)
        with balancing(self._home / "nginx", way, self._ports) as port:
            await until(lambda: _listens(port), "nginx listens")
            yield port
        for name in self._names:
            await self._nursery.order("kill", self._home / name)

    async def start(self, place: int) -> None:
        """An instance takes the port of that place."""
        self._names[place] = f"{'ab'[place]}{len(self.started)}"
        self.started.append(self._home / self._names[place])
        await self._nursery.order("start", self.started[-1], self._ports[place], self._kind)
        await until(lambda: _listens(self._ports[place]), f"{self._names[place]} listens")

    async def end(self, place: int, *, hard: bool) -> None:
        """Its place is empty from then on. No re-opening may be under way."""
        await self.settled()
        await self._nursery.order("kill" if hard else "stop", self._home / self._names[place])

    def holders(self, place: int, method: str) -> set[str]:
        """The sessions whose streams an instance holds."""
        return streams_open(self._notes(self._names[place]), method)

    async def settled(self) -> None:
        """Every attempt that reached an instance has its verdict, and there are no others."""
        for name in self._names:
            differences = partial(self._differences, name)
            await until(
                lambda: differences() == ({}, {}),  # noqa: B023 - called in this turn only
                lambda: f"{name}: not counted, and only counted: {differences()}",  # noqa: B023
            )

    def _differences(self, name: str) -> tuple[dict[Attempt, int], dict[Attempt, int]]:
        wire, counted = arrivals(self._notes(name)), attempts_in(lines(self._home / f"{name}.verdicts"))
        return dict(wire - counted), dict(counted - wire)

    def _notes(self, name: str) -> list[dict[str, Any]]:
        return lines(self._home / f"{name}.wire")


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False

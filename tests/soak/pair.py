"""A server and a client of the soak, with the plugin or without, and the network between them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from otel_mcp_resume.cli.demo.gate import Gate
from otel_mcp_resume.cli.demo.orders import understood
from tests.wire.machine import reserved_port
from tests.wire.samples import Sample, parse_metrics

__all__ = ["Pair", "Process", "pair"]

START_LIMIT = 60.0
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Process:
    """One of the two, as seen from outside."""

    child: asyncio.subprocess.Process
    metrics_port: int

    async def said(self, event: str) -> dict[str, Any]:
        """What it says next of that kind. Raises `EOFError` if it ended, and `TimeoutError`."""
        assert self.child.stdout is not None
        while line := await asyncio.wait_for(self.child.stdout.readline(), START_LIMIT):
            message = understood(line)
            if message is not None and message["event"] == event:
                return message
        raise EOFError(f"the process ended with {await self.child.wait()}")

    def order(self, line: str) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(line.encode() + b"\n")

    @property
    def resident(self) -> float:
        """MiB."""
        return int(Path(f"/proc/{self.child.pid}/statm").read_text().split()[1]) * PAGE / 2**20

    @property
    def cpu(self) -> float:
        """Seconds."""
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    async def samples(self) -> list[Sample]:
        """Its /metrics; nothing without the plugin."""
        return parse_metrics(await asyncio.to_thread(self._scrape)) if self.metrics_port else []

    def _scrape(self) -> str:
        with urllib.request.urlopen(f"http://localhost:{self.metrics_port}/metrics", timeout=20) as answer:
            text: str = answer.read().decode()
        return text


@dataclass
class Pair:
    server: Process
    client: Process
    gate: Gate
    cuts: int = 0

    async def cut(self, every: float) -> None:
        """Breaks every open GET now and then, and sometimes whatever is open."""
        while True:
            await asyncio.sleep(random.uniform(0.5, 1.5) * every)
            self.gate.cut("" if self.cuts % 5 == 4 else "GET")
            self.cuts += 1

    @property
    def processes(self) -> dict[str, Process]:
        return {"server": self.server, "client": self.client}


@contextlib.asynccontextmanager
async def _process(module: str, *arguments: str, plugin: bool) -> AsyncIterator[Process]:
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(reserved_port()) if plugin else 0
        environ = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
        if plugin:
            # Settings as far from the defaults as makes an hour see their limits, too.
            environ |= {
                "OTEL_MCP_RESUME": "1",
                "OTEL_EXPORTER_PROMETHEUS_PORT": str(port),
                "OTEL_MCP_RESUME_PROOF_TIMEOUT": "2",
                "OTEL_MCP_RESUME_MAX_STREAMS": "200",
                "OTEL_MCP_RESUME_MAX_EVENTS": "2000",
            }
        command: Sequence[str] = (sys.executable, "-W", "ignore", "-m", f"tests.soak.{module}", *arguments)
        child = await asyncio.create_subprocess_exec(
            *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environ
        )
        process = Process(child, port)
        try:
            yield process
        finally:
            assert child.stdin is not None
            child.stdin.close()
            try:
                await asyncio.wait_for(child.wait(), 10)
            except asyncio.TimeoutError:
                child.kill()
                await child.wait()


@contextlib.asynccontextmanager
async def pair(users: int, every: float, *, plugin: bool) -> AsyncIterator[Pair]:
    """Both processes at work, and somebody who cuts their streams, every so many seconds."""
    gate = Gate(lambda _: None)
    port = await gate.open()
    async with _process("server", plugin=plugin) as server:
        gate.route(int((await server.said("ready"))["port"]))
        url = f"http://127.0.0.1:{port}/mcp"
        async with _process("client", url, "--users", str(users), plugin=plugin) as client:
            await client.said("ready")
            result = Pair(server, client, gate)
            cutting = asyncio.create_task(result.cut(every))
            try:
                yield result
            finally:
                cutting.cancel()
                await gate.close()

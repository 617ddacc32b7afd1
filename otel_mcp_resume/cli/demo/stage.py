"""One scene with its processes: set up once, played as often as wanted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from otel_mcp_resume.cli.demo.child import Child, ChildError
from otel_mcp_resume.cli.demo.findings import Finding, NoMetricsError, read_findings
from otel_mcp_resume.cli.demo.gate import Gate
from otel_mcp_resume.cli.demo.result import Result
from otel_mcp_resume.cli.demo.scenes import Scene
from otel_mcp_resume.cli.demo.terminal import Terminal
from otel_mcp_resume.cli.demo.wire import short

__all__ = ["Stage"]

START_LIMIT = 60
"""Seconds that all processes together may take to start. Two are enough where nothing else runs."""

EVENT_LIMIT = 1.5
"""Seconds after which a resumed stream is said to bring nothing."""

PLAY_LIMIT = 20
"""Seconds that a play may take until its application has concluded."""

VERDICT_LIMIT = 8
"""Seconds that verdicts may take after that: several proof timeouts of the processes."""


class Stage:
    """The processes of a scene, and the network between them."""

    def __init__(self, scene: Scene, ports: Iterable[int], terminal: Terminal) -> None:
        """`ports` has a free port for the `/metrics` of each process; `terminal` is told what happens."""
        self.scene = scene
        self._ports = iter(ports)
        self._terminal = terminal
        self._gates = [Gate(self._note) for _ in range(scene.gates)]
        self._children = dict[str, Child]()
        self._listening = dict[str, int]()

    @property
    def gate(self) -> Gate:
        """The address that the application uses, or the first of them."""
        return self._gates[0]

    @property
    def gates(self) -> Sequence[Gate]:
        """All addresses that the application uses."""
        return self._gates

    @property
    def client(self) -> Child:
        """The process of the application."""
        return self._children["client"]

    @property
    def children(self) -> list[Child]:
        """Every process that was started, the client first."""
        return list(self._children.values())

    def port(self, server: str) -> int:
        """Where that server listens."""
        return self._listening[server]

    def say(self, line: str) -> None:
        """Tells what happens."""
        self._terminal.say(self.scene.name, line)

    async def tell_resumption(self) -> None:
        """Waits until the client comes back with a token, and tells how it was received."""
        exchange = await self.gate.next_resumption()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(exchange.brought_event.wait(), EVENT_LIMIT)
        first = f"first id {exchange.ids[0]}" if exchange.ids else "no event"
        self.say(
            f"it comes back with {exchange.token} of session {short(exchange.session)}:"
            f" {exchange.status}, session {short(exchange.answered_session)}, {first}"
        )

    async def open(self) -> None:
        """Starts the processes and waits until all are ready.

        Raises:
            ChildError: One is not going to be.
        """
        urls = [f"http://127.0.0.1:{await gate.open()}/mcp" for gate in self._gates]
        await self._start("client", "client", self.scene.application, *urls)
        for name, options in self.scene.servers.items():
            await self._start(name, "server", *options)
        ready = await self._until_ready()
        for child, message in zip(self._children, ready, strict=True):
            self._listening[child] = message.get("port", 0)

    async def _until_ready(self) -> list[Mapping[str, Any]]:
        """What every process said when it was ready, in the order of `children`."""
        waiting = asyncio.gather(*(child.until("ready") for child in self.children))
        try:
            return await asyncio.wait_for(waiting, START_LIMIT)
        except asyncio.TimeoutError:
            raise ChildError(f"{self.scene.name}: not every process was ready within {START_LIMIT} s") from None

    async def _start(self, name: str, part: str, *arguments: str) -> None:
        self._children[name] = await Child.start(
            f"{self.scene.name}-{name}",
            next(self._ports),
            f"{__package__}.process",
            part,
            *arguments,
            log=self._note,
        )

    async def play(self) -> Result:
        """One play, from the application's start until its session is closed again."""
        result = Result(self.scene)
        for gate in self._gates:
            gate.come_back()
            gate.route(self.port(next(iter(self.scene.servers))))
        try:
            before = await self._counts()
            await asyncio.wait_for(self._perform(result), PLAY_LIMIT)
            await self._judge(result, before)
            self.client.tell("close")
            await asyncio.wait_for(self.client.until("closed"), PLAY_LIMIT)
        except asyncio.TimeoutError:
            result.trouble = f"it did not come to its end within {PLAY_LIMIT} s"
        except (ChildError, NoMetricsError) as error:
            result.trouble = str(error)
        return result

    async def _perform(self, result: Result) -> None:
        self.client.tell("play")
        incident = asyncio.ensure_future(self.scene.incident(self))
        try:
            concluded = await self.client.until("concluded")
            result.saw, result.alarms, result.figures = (concluded[key] for key in ("saw", "alarms", "figures"))
            await incident
        finally:
            incident.cancel()

    async def _judge(self, result: Result, before: Counter[Finding]) -> None:
        """Looks at `/metrics` until everything that is wanted is there, or the time is up."""
        deadline = asyncio.get_running_loop().time() + VERDICT_LIMIT
        while True:
            result.counts = await self._counts() - before
            if result.as_wanted or asyncio.get_running_loop().time() > deadline:
                return
            await asyncio.sleep(0.25)

    async def _counts(self) -> Counter[Finding]:
        """Every verdict that the processes of this scene have reported so far."""
        readings = (read_findings(name, child.metrics_port) for name, child in self._children.items())
        return sum(await asyncio.gather(*readings), Counter[Finding]())

    async def close(self) -> None:
        """Ends every process, the client before the servers: it has sessions to end there."""
        for children in (self.children[:1], self.children[1:]):
            await asyncio.gather(*(child.end() for child in children))
        await asyncio.gather(*(gate.close() for gate in self._gates))

    def _note(self, line: str) -> None:
        self._terminal.detail(self.scene.name, line)

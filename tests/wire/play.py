"""One case from its start to its verdict."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from .bounds import Problem
from .cases import CaseError
from .expectations import check_metrics, expects_absence
from .machine import reserved_port, start_slot
from .ordinary import LEGACY_PROTOCOL, OLDER_PROTOCOL
from .playable import unplayable
from .process import PROOF_TIMEOUT, Driven
from .samples import Sample
from .scripted_client import ScriptedClient, check_exchanges
from .scripted_server import ScriptedServer, check_requests

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from .cases import Case
    from .driven.steps import Json
    from .nursery import Nursery
    from .relay import Relay

__all__ = ["TOTAL_LIMIT", "Setup", "Verdict", "judge", "recorded"]

SETTLE = PROOF_TIMEOUT + 1.0
START_LIMIT = 90.0
"""Seconds for an interpreter to import its SDK once it has a slot; the clock of a case starts after that."""
PLAY_LIMIT = 60.0
"""Seconds for a play, most of which wait for less than five, and its judgement."""
JUDGE_LIMIT = 12.0
"""Seconds after the start in which everything must be reported, and at least half of it after the last step."""
WIRE_LIMIT = 3.0
"""Seconds for what is under way on a loaded machine when the last step is done."""
POLL_INTERVAL = 0.15

TOTAL_LIMIT = 600
"""Seconds for a case with its wait for a start slot, which others may hold; for a test that plays one."""

Check = Callable[[], list[Problem]]
Look = Callable[[], Awaitable[list[Problem]]]


@dataclass(frozen=True)
class Setup:
    """Under which interpreter a case is played, with which `mcp`, and whether without the plugin."""

    python: str
    mcp: tuple[int, ...]
    plain: bool = False
    """Judge the wire only."""
    plugin: bool = True
    """Enable the plugin."""
    nursery: Nursery | None = None
    """Where the instrumented process is born, if it is not started anew."""
    log: str = ""
    """File for what it logs then."""

    @property
    def generation(self) -> int:
        """The line of the SDK: 1 or 2."""
        return self.mcp[0]

    @property
    def protocol(self) -> str:
        """The latest revision with sessions that this SDK knows."""
        return LEGACY_PROTOCOL if self.mcp >= (1, 23) else OLDER_PROTOCOL

    @classmethod
    def of(cls, python: str, *, plain: bool = False) -> Setup:
        """Raises `subprocess.CalledProcessError` if that interpreter has no `mcp`."""
        code = "import importlib.metadata as m; print(m.version('mcp'))"
        version = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
        return cls(python, tuple(int(part) for part in version.split(".")[:2]), plain, plugin=not plain)


@dataclass
class Verdict:
    """What became of a case, and what was seen meanwhile."""

    name: str
    status: Literal["ok", "FAIL", "skip"]
    detail: str = ""
    seconds: float = 0.0
    wire: list[str] = field(default_factory=list[str])
    samples: list[str] = field(default_factory=list[str])

    def line(self) -> str:
        return f"{self.status} {self.name}" + (f": {self.detail}" if self.detail else "")

    def lines(self) -> list[str]:
        """The line, the traffic, and the series that are not zero."""
        return [self.line(), *(f"    {detail}" for detail in [*self.wire, *self.samples])]


async def judge(case: Case, setup: Setup) -> Verdict:
    """Plays a case. Whatever goes wrong is in the verdict."""
    return await _judge(_Run(case, setup))


async def recorded(case: Case, setup: Setup, relay: Relay) -> Verdict:
    """Plays a case through `relay`, which keeps what passes until it is quiet."""
    return await _judge(_Run(case, setup, relay))


async def _judge(run: _Run) -> Verdict:
    case, setup = run.case, run.setup
    if reason := unplayable(case, setup.mcp):
        return Verdict(case.name, "skip", reason)
    try:
        problems = await (run.client_case() if case.instrumented == "client" else run.server_case())
        detail = "; ".join(problem.text for problem in problems)
    except asyncio.TimeoutError:
        detail = f"took longer than {PLAY_LIMIT:g} s" if run.began else "the instrumented process did not start"
    except (CaseError, LookupError, TypeError, ValueError, OSError) as error:
        detail = f"could not be played: {error!r}"
    return Verdict(
        name=case.name,
        status="FAIL" if detail else "ok",
        detail=detail,
        seconds=round(time.monotonic() - run.began, 2) if run.began else 0.0,
        wire=run.wire,
        samples=[str(sample) for sample in run.samples if sample.worth_showing],
    )


@dataclass
class _Run:
    """A case in progress."""

    case: Case
    setup: Setup
    relay: Relay | None = None
    began: float = 0.0
    wire: list[str] = field(default_factory=list[str])
    samples: list[Sample] = field(default_factory=list[Sample])

    async def client_case(self) -> list[Problem]:
        server = ScriptedServer(self.case.section("server") or {}, self.setup.protocol)
        async with server.running() as target, self._relayed(target) as port:
            spec = {"port": port, "sessions": self.case.section("client")}
            async with self._driven(spec) as (driven, _):
                return await asyncio.wait_for(self._as_client(driven, server), PLAY_LIMIT)

    async def _as_client(self, driven: Driven, server: ScriptedServer) -> list[Problem]:
        await driven.message()
        return await self._judged(
            driven,
            lambda: check_requests(server, self.case.wire, self.setup.generation),
            lambda: [str(request) for request in server.requests],
        )

    async def server_case(self) -> list[Problem]:
        async with (
            self._driven(self.case.section("server") or {}) as (driven, ready),
            self._relayed(ready["port"]) as port,
        ):
            client = ScriptedClient(port, self.setup.protocol)
            try:
                return await asyncio.wait_for(self._as_server(driven, client), PLAY_LIMIT)
            finally:
                await client.close()

    async def _as_server(self, driven: Driven, client: ScriptedClient) -> list[Problem]:
        await client.play(self.case.section("steps"))
        return await self._judged(
            driven,
            lambda: check_exchanges(client, self.case.wire, self.setup.generation),
            lambda: [f"{name}: {exchange.summary()}" for name, exchange in client.exchanges.items()],
        )

    def _relayed(self, port: int) -> contextlib.AbstractAsyncContextManager[int]:
        return contextlib.nullcontext(port) if self.relay is None else self.relay.to(port)

    @contextlib.asynccontextmanager
    async def _driven(self, spec: Json) -> AsyncGenerator[tuple[Driven, Json], None]:
        """The instrumented process, once it is ready, with what it said of itself. Starts the clock."""
        async with contextlib.AsyncExitStack() as stack:
            role, nursery = self.case.instrumented, self.setup.nursery
            if nursery is not None:
                metrics = 0 if self.setup.plain else stack.enter_context(reserved_port())
                driven = await stack.enter_async_context(nursery.child(role, spec, self.setup.log, metrics))
                ready = await asyncio.wait_for(driven.message(), START_LIMIT)
            else:
                async with start_slot():
                    start = Driven.started(self.setup.python, role, spec, plugin=self.setup.plugin)
                    driven = await stack.enter_async_context(start)
                    ready = await asyncio.wait_for(driven.message(), START_LIMIT)
            self.began = time.monotonic()
            yield driven, ready

    async def _judged(self, driven: Driven, check_wire: Check, wire: Callable[[], list[str]]) -> list[Problem]:
        problems = await _until_good(_at_once(check_wire), time.monotonic() + WIRE_LIMIT)
        if self.relay is not None:
            await self.relay.settled()
        self.wire = wire()
        if problems or self.setup.plain:
            return problems
        if expects_absence(self.case):
            await asyncio.sleep(SETTLE)
        limit = max(self.began + JUDGE_LIMIT, time.monotonic() + JUDGE_LIMIT / 2)
        return await _until_good(lambda: self._reported(driven), limit)

    async def _reported(self, driven: Driven) -> list[Problem]:
        samples = await driven.metrics()
        self.samples = samples or []
        return [Problem("nobody serves /metrics")] if samples is None else check_metrics(self.case, samples)


def _at_once(check: Check) -> Look:
    async def look() -> list[Problem]:
        return check()

    return look


async def _until_good(look: Look, limit: float) -> list[Problem]:
    """Looks until every expectation holds, one can never hold again, or the time is up."""
    while True:
        problems = await look()
        if not problems or time.monotonic() > limit or any(problem.final for problem in problems):
            return problems
        await asyncio.sleep(POLL_INTERVAL)

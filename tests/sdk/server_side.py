"""The real SDK's server behind real sockets, in this process, with the hooks in place and their facts at hand."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import logging
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, TypeVar

import uvicorn

from otel_mcp_resume.plugin import Plugin, Providers
from otel_mcp_resume.rules.terms import Generation, Outcome, Reason, Stream, UndeliveredCause, ViolationRule
from otel_mcp_resume.sdk import server, server_listen, server_sse
from otel_mcp_resume.sdk.guard import Guard
from otel_mcp_resume.sdk.patches import Patches
from otel_mcp_resume.settings import Settings
from otel_mcp_resume.watch.deadlines import Deadlines
from otel_mcp_resume.watch.facts import (
    AttemptSettled,
    EventsUndelivered,
    Fact,
    PendingRequests,
    SessionClosed,
    SessionOpened,
    StreamClosed,
    StreamOpened,
    Violated,
)
from otel_mcp_resume.watch.server import ServerWatch
from tests.wire.scripted_client import ScriptedClient

__all__ = ["PROTOCOL", "Observed", "given_back", "observed", "playing", "quiet", "running"]

F = TypeVar("F")

PROTOCOL = "2025-11-25" if tuple(map(int, version("mcp").split(".")[:2])) >= (1, 23) else "2025-06-18"
"""The latest revision with sessions that this SDK speaks."""


@dataclass
class Observed:
    """What the hooks report."""

    watch: ServerWatch
    facts: list[Fact] = field(default_factory=list)
    errors: list[tuple[str, Exception]] = field(default_factory=list)
    events: Counter[tuple[Generation, Stream]] = field(default_factory=Counter)
    hooks: dict[str, bool] = field(default_factory=dict)
    runtime: Any = None

    def of(self, kind: type[F]) -> list[F]:
        return [fact for fact in self.facts if isinstance(fact, kind)]

    @property
    def verdicts(self) -> list[tuple[Outcome, Reason]]:
        return [(fact.outcome, fact.reason) for fact in self.of(AttemptSettled)]

    @property
    def violations(self) -> list[ViolationRule]:
        return [fact.rule for fact in self.of(Violated)]

    @property
    def undelivered(self) -> dict[UndeliveredCause, int]:
        counts: Counter[UndeliveredCause] = Counter()
        for fact in self.of(EventsUndelivered):
            counts[fact.cause] += fact.count
        return dict(counts)

    @property
    def open(self) -> tuple[int, int, int]:
        """Sessions, streams and requests of the server that are open."""
        return (
            len(self.of(SessionOpened)) - len(self.of(SessionClosed)),
            len(self.of(StreamOpened)) - len(self.of(StreamClosed)),
            sum(fact.change for fact in self.of(PendingRequests)),
        )

    async def until(self, holds: Callable[[], bool], seconds: float = 20) -> None:
        """Waits for something to be reported."""
        for _ in range(int(seconds * 100)):
            if holds():
                return
            await asyncio.sleep(0.01)
        told = [f"{type(f).__name__} {getattr(f, 'stream', '')} {getattr(f, 'cause', '')}".strip() for f in self.facts]
        raise AssertionError(f"never came true; reported so far: {told}")


@contextlib.contextmanager
def observed(
    proof_timeout: float = 20, settings: Settings | None = None, facts: list[Fact] | None = None
) -> Iterator[Observed]:
    """The hooks of the server side are in place inside."""
    settings = settings or Settings()
    result: Observed
    hooks: dict[str, bool] = {}
    errors: list[tuple[str, Exception]] = []
    facts = [] if facts is None else facts
    events: Counter[tuple[Generation, Stream]] = Counter()

    def counter(generation: Generation, stream: Stream) -> Callable[[], None]:
        return lambda: events.update([(generation, stream)])

    deadlines = Deadlines(proof_timeout, lambda hook, error: errors.append((hook, error)))
    watch = ServerWatch(emit=facts.extend, events=counter, deadlines=deadlines, limits=settings)
    result = Observed(watch, facts, errors, events, hooks)
    runtime = dataclasses.replace(
        Plugin(settings, Providers()).runtime,
        patches=Patches(hooks.__setitem__),
        guard=Guard(lambda hook, error: errors.append((hook, error))),
        report=facts.extend,
        server=watch,
    )
    result.runtime = runtime
    server.install(runtime)
    server_sse.install(runtime)
    server_listen.install(runtime)
    try:
        with quiet():
            yield result
        assert errors == []
    finally:
        runtime.patches.remove_all()
        deadlines.close()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """What the SDK logs with a traceback would keep its streams alive until some later test."""
    logger = logging.getLogger("mcp")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
        gc.collect()  # what an older SDK leaves unclosed is reported now, not during another test


@contextlib.asynccontextmanager
async def running(app: Any) -> AsyncIterator[int]:
    """The application on a free port of loopback."""
    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    service = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
    service.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment] # the test's own stay
    task = asyncio.create_task(service.serve(sockets=[listener]))
    try:
        while not service.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        yield port
    finally:
        service.should_exit = True
        await task


@contextlib.asynccontextmanager
async def playing(app: Any) -> AsyncIterator[ScriptedClient]:
    """A raw client of the application. What it waited for in vain fails the test."""
    async with running(app) as port:
        client = ScriptedClient(port)
        try:
            yield client
            assert not client.problems, client.problems
        finally:
            await client.close()


async def given_back(seen: Observed) -> None:
    """Everything that was open is closed, and nothing is remembered."""
    await seen.until(lambda: seen.open == (0, 0, 0))
    await seen.until(lambda: seen.watch.remembered == (0, 0))
    assert seen.undelivered == {}
    assert seen.violations == []

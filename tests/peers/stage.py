"""One scene between one server and one client: the proxy between them, and what came of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.peers.clients import Client, connecting
from tests.peers.proxy import Proxy
from tests.peers.servers import serving
from tests.peers.watched import Said, watching
from tests.peers.wirelog import Exchange
from tests.sdk.server_side import quiet

__all__ = ["OURS", "Cast", "Play", "Report", "Stage", "perform"]

OURS = ("python", "python-2026", "fastmcp")
"""Peers that run in this process and are watched."""
LIMIT = 30.0
SCENE_LIMIT = 90.0


@dataclass
class Report:
    """What a scene's table shows, and what the tests compare."""

    wire: list[str] = field(default_factory=list)
    telling_wire: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    """Log messages that reached the application."""
    results: list[str] = field(default_factory=list)
    """Of the application's calls."""
    client_said: Counter[str] = field(default_factory=Counter)
    server_said: Counter[str] = field(default_factory=Counter)
    generations: set[str] = field(default_factory=set)
    faults: Counter[str] = field(default_factory=Counter)
    words: list[str] = field(default_factory=list)
    """What a peer that nobody watches told its application."""


@dataclass(frozen=True)
class Cast:
    """Who plays, and with what."""

    server: str
    client: str
    store: str | None
    proof_timeout: float
    verdicts: int
    """How many are expected, of both sides together."""
    home: Path | None
    """Where the packages of Node are."""


class Stage:
    """What a scene acts with."""

    def __init__(self, cast: Cast, said: Said) -> None:
        self.cast = cast
        self.said = said
        self.server_is_watched = cast.server in OURS
        self.proxy: Proxy
        self.client: Client
        self.results: list[str] = []
        self.words: list[str] = []
        self._servers = contextlib.AsyncExitStack()

    async def start_server(self) -> int:
        return await self._servers.enter_async_context(
            serving(self.cast.server, self.cast.store, self.cast.home, self.words.append)
        )

    async def restart_server(self) -> None:
        """A new instance takes the place of the old one, with nothing of its memory."""
        self.proxy.upstream = await self.start_server()

    async def close_servers(self) -> None:
        await self._servers.aclose()

    async def call(self, tool: str) -> str:
        """The call's result, or its error, which is noted and not raised."""
        try:
            text = await self.client.call(tool)
        except Exception as error:  # noqa: BLE001 - every SDK has its own
            text = f"error: {error}".partition("\n")[0]
        self.results.append(f"{tool}: {text}")
        return text

    @contextlib.asynccontextmanager
    async def calling(self, tool: str) -> AsyncIterator[asyncio.Task[str]]:
        """A call under way, which is given up in the end if it is still open."""
        task = asyncio.create_task(self.call(tool))
        try:
            yield task
        finally:
            if not task.done():
                self.results.append(f"{tool}: no answer")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def hears(self, text: str) -> None:
        await self.until(lambda: text in self.client.heard)

    async def stream(self, method: str, call: str = "") -> Exchange:
        """The latest such exchange, once its response is under way."""
        await self.until(lambda: any(each.is_stream for each in self.proxy.log.find(method, call)))
        return self.proxy.log.find(method, call)[-1]

    async def cut(self, exchange: Exchange) -> None:
        """Ends the connection. GETs are held from now on; returns when the sides that are watched have noticed."""
        sides = [side for side, whose in (("client", self.cast.client), ("server", self.cast.server)) if whose in OURS]
        before = {side: self.said.closed_streams(side) for side in sides}
        self.proxy.hold_gets()
        self.proxy.cut(exchange)
        await self.until(lambda: all(self.said.closed_streams(side) > before[side] for side in sides))

    async def come_back(self) -> None:
        """Until the client's next GET is held."""
        await self.until(lambda: self.proxy.log.find("GET", status=None))

    async def try_to_resume(self, count: int = 3) -> None:
        """Lets so many GETs pass, and waits for the verdicts on what then happens."""
        self.proxy.let_gets_pass(count)
        await self.verdicts()

    async def verdicts(self) -> None:
        """Until there are as many as there have to be. What comes on top is found when the scene is over."""
        await self.until(
            lambda: self.said.attempts("client").total() + self.said.attempts("server").total() >= self.cast.verdicts
        )

    async def until(self, holds: Callable[[], object]) -> None:
        """Waits for what another process or thread does."""
        deadline = asyncio.get_running_loop().time() + LIMIT
        while not holds():
            if asyncio.get_running_loop().time() > deadline:
                told = [*self.proxy.log.lines(), *self.results, *self.client.heard, *self.words]
                raise AssertionError("\n".join(["never came true:", *told]))
            await asyncio.sleep(0.02)


Play = Callable[[Stage], Awaitable[None]]


async def perform(cast: Cast, play: Play) -> Report:
    """Plays one scene with fresh peers. Raises `TimeoutError` if it does not come to an end."""
    with quiet(), watching(cast.proof_timeout) as said:
        return await asyncio.wait_for(_perform(Stage(cast, said), play), SCENE_LIMIT)


async def _perform(stage: Stage, play: Play) -> Report:
    cast, said = stage.cast, stage.said
    report = Report()
    try:
        stage.proxy = Proxy(await stage.start_server())
        async with stage.proxy.running() as url:
            async with connecting(cast.client, url, cast.home, stage.words.append) as stage.client:
                await play(stage)
            report.wire = stage.proxy.log.lines()
            report.telling_wire = stage.proxy.log.lines(telling=True)
    finally:
        await stage.close_servers()
    for side, whose, found in (
        ("client", cast.client, report.client_said),
        ("server", cast.server, report.server_said),
    ):
        if whose in OURS:
            found.update(said.attempts(side))
            found.update({f"violation {rule}": count for rule, count in said.violations(side).items()})
    if stage.server_is_watched:
        report.server_said.update({f"undelivered {key}": count for key, count in said.undelivered().items()})
    report.heard, report.results = stage.client.heard, stage.results
    report.generations, report.faults = said.generations(), said.faults()
    report.words = [word.partition("\n")[0] for word in stage.words]
    return report

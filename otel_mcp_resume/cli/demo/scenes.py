"""The scenes: what happens to whom, and the verdict that it must give."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from otel_mcp_resume.cli.demo.stage import Stage

__all__ = ["SCENES", "Scene", "Wanted"]

Incident = Callable[["Stage"], Awaitable[None]]

OUTAGE = 2.5
"""Seconds. The SDK's client comes back after one, and once more after another; then it gives up."""


@dataclass(frozen=True)
class Wanted:
    """A verdict that a scene must give."""

    process: str
    terms: tuple[str, ...]
    """Outcome and reason of an attempt, the rule of a violation, or the cause of undelivered messages."""
    stream: str = ""
    figure: str = ""
    """The figure in the application's conclusion that the count must equal. Without one, once is enough."""

    def __str__(self) -> str:
        counted = f" (as many as the application misses: {self.figure})" if self.figure else ""
        return f"{self.process}: {', '.join(self.terms)}{counted}"


@dataclass(frozen=True)
class Scene:
    """One of them. Its processes are `client` and those of `servers`; clients meet the first server at first."""

    name: str
    story: str
    application: str
    incident: Incident
    wanted: tuple[Wanted, ...]
    servers: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"server": ("--store", "log")})
    """Command line of each server."""
    gates: int = 1
    """How many addresses the application gets. All lead to the same server, each can be cut alone."""
    healthy: bool = False
    """Whether nothing but `wanted` may be reported."""

    @property
    def processes(self) -> int:
        """How many there are: the client and the servers."""
        return 1 + len(self.servers)


async def cut_call(stage: Stage) -> None:
    await stage.client.until("arrived", text="row 3")
    stage.say("cutting the call's connection after row 3")
    stage.gate.cut("POST")
    await stage.tell_resumption()


async def deploy(stage: Stage) -> None:
    await stage.client.until("arrived", text="row 3")
    stage.say("deploying: the balancer sends everybody to the new instance, the old connections are cut")
    stage.gate.route(stage.port("new-instance"))
    stage.gate.cut()
    await stage.tell_resumption()


async def be_away(stage: Stage) -> None:
    await stage.client.until("arrived", text="news 3")
    stage.say(f"the balancer is away for {OUTAGE} s")
    stage.gate.leave()
    await asyncio.sleep(OUTAGE)
    stage.gate.come_back()
    stage.say("the balancer is back")


async def cut_news(stage: Stage) -> None:
    await stage.client.until("arrived", text="news 3")
    stage.say("cutting the connection of the news after the third")
    stage.gate.cut("GET")
    await stage.tell_resumption()


async def cut_ann(stage: Stage) -> None:
    await stage.client.until("arrived", text="ann 3")
    stage.say("cutting Ann's connection after her third")
    stage.gate.cut("GET")
    await stage.tell_resumption()


async def cut_before_question(stage: Stage) -> None:
    await stage.client.until("arrived", text="looking for a seat")
    stage.say("cutting the session's own stream shortly before the server asks")
    stage.gate.cut("GET")


SCENES = (
    Scene(
        "resume",
        "a connection is cut in the middle of a call, and the client goes on where it stopped",
        application="export",
        incident=cut_call,
        wanted=(
            Wanted("client", ("proven", "replayed_event"), "request"),
            Wanted("server", ("proven", "replay_complete"), "request"),
        ),
        healthy=True,
    ),
    Scene(
        "deploy",
        "the reconnect meets a new instance, which does not know the session and takes it in",
        application="export",
        incident=deploy,
        servers={"old-instance": ("--adopt", "--first", "4816"), "new-instance": ("--adopt",)},
        wanted=(Wanted("client", ("gap", "session_changed"), "request"),),
    ),
    Scene(
        "loop",
        "the event store has forgotten the token: 200 and nothing, again and again",
        application="export",
        incident=cut_call,
        servers={"server": ("--store", "expiring")},
        wanted=(Wanted("client", ("unproven", "reconnect_loop"), "request"),),
    ),
    Scene(
        "given-up",
        "the balancer is away for a moment, and the client stops asking for its stream",
        application="follow",
        incident=be_away,
        wanted=(Wanted("client", ("abandoned", "retries_exhausted"), "standalone"),),
    ),
    Scene(
        "slow-store",
        "what is sent between the end of a replay and the return to live is never delivered",
        application="follow",
        incident=cut_news,
        servers={"server": ("--store", "slow")},
        wanted=(
            Wanted("server", ("gap", "undelivered"), "standalone"),
            Wanted("server", ("skipped",), "standalone", figure="missing"),
        ),
    ),
    Scene(
        "shared-store",
        "two sessions in one event store, which knows streams by the same names",
        application="neighbours",
        incident=cut_ann,
        gates=2,
        wanted=(Wanted("server", ("gap", "cross_session_replay"), "standalone"),),
    ),
    Scene(
        "lost-question",
        "the server asks the user while the stream is down, and waits for ever",
        application="book",
        incident=cut_before_question,
        servers={"server": ("--store", "none")},
        wanted=(Wanted("server", ("pending_request_lost",)),),
    ),
)

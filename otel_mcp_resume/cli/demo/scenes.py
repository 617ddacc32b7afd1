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
    came_from: str = ""
    """The generation that the token was of, if another one than it was shown to."""
    figure: str = ""
    """The figure in the application's conclusion that the count must equal. Without one, once is enough."""

    def __str__(self) -> str:
        counted = f" (as many as the application says: {self.figure})" if self.figure else ""
        token = f", with a token of {self.came_from}" if self.came_from else ""
        return f"{self.process}: {', '.join(self.terms)}{token}{counted}"


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
    alone: bool = False
    """Whether nothing else may be reported, but for what leaves nothing in doubt."""

    @property
    def processes(self) -> int:
        """How many there are: the client and the servers."""
        return 1 + len(self.servers)


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


def cut(method: str, after: str) -> Incident:
    """The connection of the `method` requests breaks when this message has arrived."""

    async def incident(stage: Stage) -> None:
        await stage.client.until("arrived", text=after)
        stage.say(f"cutting the connection after {after}")
        stage.gate.cut(method)
        await stage.tell_resumption()

    return incident


async def cut_before_question(stage: Stage) -> None:
    await stage.client.until("arrived", text="looking for a seat")
    stage.say("cutting the session's own stream shortly before the server asks")
    stage.gate.cut("GET")


async def migrate(stage: Stage) -> None:
    await stage.client.until("arrived", text="ann 3")
    stage.say("migrating: the balancer sends reconnects to instances of the next generation, and there is a blip")
    stage.gates[0].route(stage.port("streamable"))
    stage.gates[0].cut()
    await stage.tell_resumption()
    await stage.client.until("arrived", text="bob 3")
    stage.say("the same blip for Bob, who drops his token, initializes anew and asks for what he missed")
    stage.gates[1].route(stage.port("streamable"))
    stage.gates[1].cut()


SCENES = (
    Scene(
        "resume",
        "a connection is cut in the middle of a call, and the client goes on where it stopped",
        application="export",
        incident=cut("POST", after="row 3"),
        wanted=(
            Wanted("client", ("proven", "replayed_event"), "request"),
            Wanted("server", ("proven", "replay_complete"), "request"),
        ),
        alone=True,
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
        incident=cut("POST", after="row 3"),
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
        incident=cut("GET", after="news 3"),
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
        incident=cut("GET", after="ann 3"),
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
    Scene(
        "migration",
        "clients of HTTP+SSE are moved to streamable HTTP; one shows its old token there, one does it right",
        application="migrate",
        incident=migrate,
        servers={"sse": ("--legacy", "--first", "4816"), "streamable": ("--store", "trusting")},
        gates=2,
        wanted=(
            Wanted("client", ("gap", "session_changed"), "standalone", came_from="sse", figure="moved"),
            Wanted("streamable", ("gap", "unknown_token_accepted"), "standalone", figure="moved"),
            Wanted("streamable", ("unknown_token_accepted",), figure="moved"),
        ),
        alone=True,
    ),
)

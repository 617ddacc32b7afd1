"""Two instances behind nginx are replaced one after the other while twenty clients hold streams.

Each attempt that is counted must be one that the test's own logs of the wire show, and the reverse.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from otel_mcp_resume.cli.demo import missing
from tests.peers.balancer import NGINX, Way
from tests.peers.roll_stage import (
    PROOF_TIMEOUT,
    Attempt,
    Fleet,
    Nursery,
    arrivals,
    attempts_in,
    lines,
    re_openings,
    table,
    until,
    verdicts_in,
)
from tests.peers.roll_wire import Relay

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(240),
    pytest.mark.xdist_group("fleet"),
    pytest.mark.skipif(not os.environ.get("ROLL"), reason="needs a machine for itself: run it with ROLL=1"),
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
    pytest.mark.skipif(bool(missing()), reason=f"the demo's parts are not there: {missing()}"),
]

CLIENTS = 20
NOTICED = 3.0
"""Seconds after which each client has noticed that its instance was replaced, by itself or by its application."""


@dataclass(frozen=True)
class Part:
    """What is played."""

    name: str
    title: str
    way: Way
    kind: str = "manager"
    style: str = "busy"
    rolls: int = 1


PARTS = (
    Part("sticky", "sticky by client, two rolls, the second by SIGKILL", Way.BY_CLIENT, rolls=2),
    Part("hash", "hash of `Mcp-Session-Id`, one roll", Way.BY_SESSION),
    Part("in-turn", "not sticky, one roll", Way.IN_TURN),
    Part("adopting", "sticky by client, instances take in unknown sessions, one roll", Way.BY_CLIENT, kind="adopting"),
    Part("idle", "idle streams, `proxy_read_timeout 4s`", Way.IMPATIENT, style="idle", rolls=0),
)


@dataclass
class Phase:
    """What came of one part: the log in front of the balancer, and those of the instances; the records of both."""

    part: Part
    relay: Relay
    client: list[dict[str, Any]]
    arrived: Counter[Attempt]
    server: list[dict[str, Any]]


async def play(part: Part, nursery: Nursery, home: Path) -> Phase:
    fleet = Fleet(nursery, home / part.name, part.kind)
    is_steady = part.way in (Way.BY_CLIENT, Way.IMPATIENT)  # else a session works by chance
    async with fleet.up(part.way) as port:
        async with fleet.crowd(port, part.style) as (relay, holding):

            async def all_hold() -> None:
                if is_steady:
                    await until(lambda: holding() == CLIENTS, f"{part.name}: all clients hold a session")

            open_at_first = CLIENTS if is_steady else CLIENTS // 4
            await until(
                lambda: sum(get.status == 200 for get in relay.gets) >= open_at_first, f"{part.name}: streams are open"
            )
            await all_hold()
            for number in range(part.rolls):
                for place in range(2):
                    await fleet.replace(place, hard=number == 1)
                    await asyncio.sleep(NOTICED)
                    await all_hold()
            if part.style == "idle":
                await until(lambda: len(relay.gets) >= 2 * CLIENTS, "the balancer hangs up on all")
            await asyncio.sleep(PROOF_TIMEOUT + 0.5)
        await fleet.all_settled()
    logs = [fleet.home / name for name in fleet.started]
    arrived = Counter[Attempt]()
    for log in logs:
        arrived += arrivals(lines(log.with_suffix(".wire")))
    server = [record for log in logs for record in lines(log.with_suffix(".verdicts"))]
    return Phase(part, relay, lines(fleet.home / "clients.verdicts"), arrived, server)


async def play_all(home: Path) -> list[Phase]:
    async with Nursery().up() as nursery:
        return await asyncio.gather(*(play(part, nursery, home) for part in PARTS))


def rows(phases: list[Phase]) -> Iterator[tuple[str, ...]]:
    yield "phase", "GETs", "re-openings", "client", "re-openings at the instances", "server"
    yield ("---",) * 6
    for phase in phases:
        certain, left = re_openings(phase.relay)
        early = f" and {left.total()} of clients that were leaving" if left else ""
        say = [
            "; ".join(f"{count} {what}" for what, count in sorted(verdicts_in(each).items())) or "nothing"
            for each in (phase.client, phase.server)
        ]
        counts = str(len(phase.relay.gets)), f"{certain.total()}{early}", say[0], str(phase.arrived.total()), say[1]
        yield phase.part.title, *counts


def test_every_counted_attempt_is_one_on_the_wire_and_the_reverse(tmp_path: Path) -> None:
    phases = asyncio.run(play_all(tmp_path))
    print(table(rows(phases)))
    for phase in phases:
        name = phase.part.name
        certain, left = re_openings(phase.relay)
        counted = attempts_in(phase.client)
        assert certain - counted == {}, f"{name}: on the wire, and not counted"
        assert counted - certain - left == {}, f"{name}: counted, and not on the wire"
        assert phase.arrived == attempts_in(phase.server), f"{name}: at the instances"
        assert certain or phase.part.way is Way.IN_TURN, f"{name}: nothing was re-opened"

        # A stream that another session took in has lost what came after its token. Nothing else is a gap.
        strange = {
            (get.answered, get.token, get.status)
            for get in phase.relay.gets
            if get.token and get.answered not in ("", get.session)
        }
        gaps = attempts_in([each for each in phase.client if each.get("mcp.resume.outcome") == "gap"])
        assert set(gaps) == strange & set(counted), name
        assert bool(gaps) is (phase.part.kind == "adopting"), name
        # A stream that was cut before its first id is re-opened without a token: what was stored meanwhile is lost.
        lost = [each for each in phase.server if each.get("mcp.resume.outcome") == "gap"]
        assert {(each["mcp.resume.reason"], "mcp.resume.token" in each) for each in lost} <= {("undelivered", False)}

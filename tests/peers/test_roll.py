"""Two instances behind nginx are replaced one after the other while twenty clients hold streams.

Each attempt that is counted must be one that the test's own logs of the wire show, and the reverse. To see what was
counted, run it with `-s`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from otel_mcp_resume.cli.demo import missing
from tests.peers.balancer import NGINX, Way
from tests.peers.roll_logs import attempts_in, re_openings, table, verdicts_in
from tests.peers.roll_play import CLIENTS, Part, Play
from tests.peers.roll_stage import Helper, until

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(400),
    pytest.mark.xdist_group("fleet"),
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
    pytest.mark.skipif(bool(missing()), reason=f"the demo's parts are not there: {missing()}"),
]

PATIENCE, SHORT = 60.0, 1.0
"""Seconds that clients wait for a first word: one that must come, and one that the balancer may have cut off."""
TRIES = 6
"""How often the clients begin anew where only chance gives a session."""

REFUSED = frozenset({"rejected, session_not_found"})
STICKY = Part("sticky by client, two rolls, the second by SIGKILL", Way.BY_CLIENT, REFUSED, REFUSED, rolls=2)
ADOPTED = Part(
    "sticky by client, instances take in unknown sessions, one roll",
    Way.BY_CLIENT,
    frozenset({"gap, session_changed"}),
    frozenset({"unproven, ledger_evicted"}),
    kind="adopting",
)
ROLLED = (
    STICKY,
    Part("hash of `Mcp-Session-Id`, one roll", Way.BY_SESSION, REFUSED, REFUSED),
    Part("not sticky, one roll", Way.IN_TURN, REFUSED, REFUSED),
    ADOPTED,
)
IDLE = Part(
    "idle streams, `proxy_read_timeout 3s`, news while they are cut",
    Way.IMPATIENT,
    frozenset({"proven, replayed_event", "unproven, no_event_ids"}),
    frozenset({"proven, replay_complete", "gap, undelivered"}),
)


async def roll(play: Play) -> None:
    """Clients that work, and instances that are replaced under them."""
    for number in range(play.part.rolls):
        for _ in range(TRIES):
            await play.join()
            ready = await play.tell("work", "all", PATIENCE if play.part.is_steady else SHORT)
            if any(play.will_return(place) for place in range(2)):
                break
            await play.leave()
        assert ready == CLIENTS or not play.part.is_steady
        await play.roll(hard=number == 1)
        if play.part is STICKY:
            assert await play.tell("look") == 0
        await play.leave()


async def wait_for_nothing(play: Play) -> None:
    """The balancer cuts every stream. What is sent before it is open again is replayed, or lost, by what was there.

    The even clients had news before, and so a token; the odd ones had none.
    """
    play.relay.hold()
    await play.join()
    assert await play.tell("word", "even", "early") == CLIENTS // 2
    await until(lambda: all(play.carried(f"early-{number}-") for number in range(0, CLIENTS, 2)), "early news")
    await until(lambda: not any(play.will_return(place) for place in range(2)), "the balancer hangs up on all")
    assert await play.tell("word", "all", "late") == CLIENTS
    await until(lambda: all(play.stored(f"late-{number}-") for number in range(CLIENTS)), "late news are stored")
    mark = len(play.relay.gets)
    play.relay.let_go()
    await until(lambda: len({get.session for get in play.relay.gets[mark:]}) == CLIENTS, "all are open again")
    await play.leave()


async def play_all(home: Path) -> list[Play]:
    log, plays = home / "clients.verdicts", list[Play]()
    async with (
        Helper.up("tests.peers.roll_instance") as nursery,
        Helper.up("tests.peers.roll_clients", log) as crowd,
    ):
        for part in (*ROLLED, IDLE):
            async with Play.of(part, nursery, crowd, log) as play:
                await (wait_for_nothing if part is IDLE else roll)(play)
            plays.append(play)
    return plays


def rows(plays: list[Play]) -> Iterator[tuple[str, ...]]:
    yield "part", "GETs", "re-openings", "client", "re-openings at the instances", "server"
    yield ("---",) * 6
    for play in plays:
        client, server = (
            "; ".join(f"{count} {what}" for what, count in sorted(verdicts_in(each).items())) or "nothing"
            for each in (play.client, play.server)
        )
        seen, arrived = re_openings(play.relay.gets).total(), play.arrived.total()
        yield play.part.title, *map(str, (len(play.relay.gets), seen, client, arrived, server))


def test_every_counted_attempt_is_one_on_the_wire_and_the_reverse(tmp_path: Path) -> None:
    plays = asyncio.run(play_all(tmp_path))
    print(f"\n{table(rows(plays))}")
    for play in plays:
        title, seen = play.part.title, re_openings(play.relay.gets)
        assert attempts_in(play.client) == seen, title
        assert attempts_in(play.server) == play.arrived, title
        assert seen, title
        for records, allowed in ((play.client, play.part.client), (play.server, play.part.server)):
            said = {what for what in verdicts_in(records) if not what.startswith(("abandoned", "violation"))}
            assert said == allowed, title
    idle = plays[-1]
    lost = {number for number in range(CLIENTS) if not idle.carried(f"late-{number}-")}
    assert lost == set(range(1, CLIENTS, 2)), "a replay needs a token"
    losers = {get.session for get in idle.relay.gets if get.client in lost}
    gaps = [each["mcp.session.id"] for each in idle.server if each.get("mcp.resume.outcome") == "gap"]
    assert sorted(gaps) == sorted(losers), "each loss is told once, and nothing else"

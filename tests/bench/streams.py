"""What many idle GET streams weigh: a session, and its stream, on either side."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench.arms import ARMS, BARE
from tests.bench.held import WARM
from tests.bench.process import Child, ChildError, started

__all__ = ["STREAMS", "Weight", "open_streams", "table", "until_open", "weigh"]

STREAMS, QUICK = 2000, 100
AT_ONCE = 200
PATIENCE = 120.0
"""Seconds until so many streams must be open."""


@dataclass(frozen=True)
class Weight:
    """Bytes for one session or one stream. `ours` is what lines of the plugin allocated."""

    arm: str
    side: str
    what: str
    resident: float
    traced: float
    ours: float


def weigh(arms: Sequence[str], sink: str, *, quick: bool = False) -> list[Weight]:
    """One arm after the other: memory does not depend on what else runs. Twice, as tracing has a weight of its own."""
    count = QUICK if quick else STREAMS
    found: list[Weight] = []
    for arm in arms:
        traced = _phases(arm, sink, count, traced=True)
        plain = traced if quick else _phases(arm, sink, count, traced=False)
        for side in ("server", "client"):
            for number, what in enumerate(("session", "stream")):
                grown = {
                    key: (phases[side][number + 1][key] - phases[side][number][key]) / count
                    for key, phases in (("resident", plain), ("traced", traced), ("ours", traced))
                }
                found.append(Weight(arm, side, what, **grown))
    return found


def _phases(arm: str, sink: str, count: int, *, traced: bool) -> dict[str, list[dict[str, int]]]:
    with started("server", arm, sink, stored=False, traced=traced) as server:
        url = f"http://127.0.0.1:{server.ask()['port']}/mcp"
        with started("holder", arm, sink, url=url, count=count, traced=traced) as client:
            phases: dict[str, list[dict[str, int]]] = {"server": [], "client": [client.ask()]}
            until_open(server, WARM)
            phases["server"].append(server.ask(do="memory"))
            phases["client"].append(client.ask(do="sessions"))
            phases["server"].append(server.ask(do="memory"))
            open_streams(client, server, count)
            phases["client"].append(client.ask(do="memory"))
            phases["server"].append(server.ask(do="memory"))
    return phases


def open_streams(client: Child, server: Child, count: int) -> None:
    """Those of all sessions, some at a time: more than a listener's backlog would be dropped, and wait for minutes."""
    for done in range(0, count, AT_ONCE):
        batch = min(AT_ONCE, count - done)
        client.ask(do="streams", begin=batch)
        until_open(server, WARM + done + batch)


def until_open(server: Child, count: int) -> None:
    """Waits until the server has so many."""
    until = time.monotonic() + PATIENCE
    while server.ask(do="gets")["gets"] < count:
        if time.monotonic() > until:
            raise ChildError(f"{count} streams did not open")
        time.sleep(0.05)


def table(found: Sequence[Weight]) -> str:
    """Markdown. What an arm adds to the bare SDK; in brackets what grew in resident memory."""
    rows = [
        "| each idle session and stream | session, server | session, client | stream, server | stream, client |",
        "|---|---|---|---|---|",
    ]
    by = {(weight.arm, weight.side, weight.what): weight for weight in found}
    columns = [(side, what) for what in ("session", "stream") for side in ("server", "client")]
    for arm in dict.fromkeys(weight.arm for weight in found):
        cells: list[str] = []
        for side, what in columns:
            own, bare = by[arm, side, what], by[BARE, side, what]
            if arm == BARE:
                cells.append(f"{own.traced / 1024:.1f} KiB")
            else:
                cells.append(f"{own.traced - bare.traced:+.0f} B (RSS {own.resident - bare.resident:+.0f})")
        rows.append(f"| {ARMS[arm].title} | {' | '.join(cells)} |")
    return "\n".join(rows)

"""`python -m tests.bench streams --streams N`: so many idle GET streams at once, between two processes.

Nothing is traced, which would weigh more than they do: what one of them weighs is what grew in resident memory.
While all are open, both plugins are scraped. Then the client ends, and the server is scraped until it knows of none.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from tests.bench.arms import ARMS
from tests.bench.held import WARM
from tests.bench.process import ChildError, started
from tests.bench.streams import open_streams, until_open

__all__ = ["Held", "allow", "hold", "table"]

SPARE = 200
"""Open files of a process beside those of its streams."""
SCRAPES = 5
PATIENCE = 120.0
"""Seconds until the server knows that all streams have ended."""
SIDES = ("server", "client")


@dataclass(frozen=True)
class Held:
    """What was seen of one arm. Weights are bytes by side, for one of them."""

    arm: str
    count: int
    session: dict[str, float]
    stream: dict[str, float]
    seconds: float
    """From the first session to the last stream."""
    known: dict[str, float]
    """Open streams by side, as `/metrics` says; none without the plugin."""
    left: float
    """Those of the server once the client had gone."""
    errors: float
    scrape: float
    """Milliseconds until the server had answered, the longest of several."""


def allow(count: int) -> None:
    """Lets processes of ours have so many connections. Raises `ValueError` if the system does not."""
    needed = count + SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard not in (resource.RLIM_INFINITY, max(hard, needed)):
        raise ValueError(f"{count} streams need {needed} open files in a process, and `ulimit -Hn` is {hard}")
    if soft not in (resource.RLIM_INFINITY, max(soft, needed)):
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def hold(arm: str, sink: str, count: int) -> Held:
    """Opens them, looks, and lets them go."""
    allow(count + WARM)
    with started("server", arm, sink, stored=False) as server:
        url = f"http://127.0.0.1:{server.ask()['port']}/mcp"
        shown = {"server": server.ask(do="endpoint")["url"]}
        with started("holder", arm, sink, url=url, count=count) as client:
            weights = {"client": [client.ask()["resident"]]}
            until_open(server, WARM)
            weights["server"] = [server.ask(do="memory")["resident"]]
            began = time.monotonic()
            weights["client"].append(client.ask(do="sessions")["resident"])
            weights["server"].append(server.ask(do="memory")["resident"])
            open_streams(client, server, count)
            seconds = time.monotonic() - began
            there = client.ask(do="memory")
            weights["client"].append(there["resident"])
            weights["server"].append(server.ask(do="memory")["resident"])
            shown["client"] = there["url"]
            taken, told = _scraped(shown)
        session, stream = (
            {side: (weights[side][step + 1] - weights[side][step]) / count for side in SIDES} for step in (0, 1)
        )
        left, errors = _gone(shown["server"]) if shown["server"] else (0.0, 0.0)
    known = {side: streams for side, (streams, _) in told.items()}
    errors += sum(errors for _, errors in told.values())
    return Held(arm, count, session, stream, seconds, known, left, errors, taken)


def _scraped(urls: dict[str, str]) -> tuple[float, dict[str, tuple[float, float]]]:
    """How long the server took at most, and what each side says."""
    taken: list[float] = [0.0]
    told: dict[str, tuple[float, float]] = {}
    for side, url in urls.items():
        for _ in range(SCRAPES if url else 0):
            began = time.perf_counter()
            told[side] = _read(url, side)
            taken.append(1e3 * (time.perf_counter() - began) if side == "server" else 0.0)
    return max(taken), told


def _read(url: str, side: str) -> tuple[float, float]:
    """Open streams of that side, and faults of ours."""
    with urlopen(url, timeout=60) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    sums = {"mcp_resume_open_streams": 0.0, "mcp_resume_internal_errors_total": 0.0}
    for family in families:
        for sample in family.samples:
            if sample.name in sums and sample.labels.get("side", side) == side:
                sums[sample.name] += sample.value
    streams, errors = sums.values()
    return streams, errors


def _gone(url: str) -> tuple[float, float]:
    until = time.monotonic() + PATIENCE
    while True:
        left, errors = _read(url, "server")
        if not left or time.monotonic() > until:
            return left, errors
        time.sleep(0.2)


def table(found: Sequence[Held]) -> str:
    """Markdown. Raises `ChildError` if the plugin did not know of all of them, kept some, or had a fault."""
    rows = [
        "| idle | session, server | session, client | stream, server | stream, client | known | left | scrape |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for held in found:
        weights = [f"{kind[side] / 1024:.1f} KiB" for kind in (held.session, held.stream) for side in SIDES]
        known = " and ".join(f"{held.known[side]:,.0f}" for side in SIDES) if held.known else "-"
        seen = [known, f"{held.left:.0f}", f"{held.scrape:.0f} ms"] if held.known else ["", "", ""]
        rows.append(f"| {held.count:,}, {ARMS[held.arm].title} | {' | '.join(weights + seen)} |")
        expected = {*held.known.values()} <= {held.count + WARM}
        if not expected or held.left or held.errors:
            raise ChildError(f"the plugin was wrong: {held}")
    return "\n".join(rows)

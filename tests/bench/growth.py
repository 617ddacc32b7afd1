"""`python -m tests.bench growth`: how the plugin's cost grows with events, streams, sessions, tokens, and a scrape.

The hooks are driven by hand, as for the micro-benchmark, so that a million events take seconds. What is told is what
the plugin adds: the same was done without it.
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench import scrape
from tests.bench.client_paths import client_event
from tests.bench.crowd import Crowd, one_session
from tests.bench.server_paths import server_event
from tests.bench.walked import Walk, finish

__all__ = ["Point", "Series", "main", "measure"]

EVENTS = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
STREAMS = (1, 10, 100, 1_000, 5_000, 20_000)
SESSIONS = (1, 10, 100, 1_000, 10_000, 50_000, 200_000)
TOKENS = (1, 10, 100, 1_000, 10_000, 100_000)
LONG = 100_000
"""From this size on, one run is long enough to trust it."""
PLOT = Path(__file__).with_name("growth.png")
SIDES: dict[str, Callable[..., Walk]] = {
    "server": partial(server_event, stored=True),
    "client": partial(client_event, with_ids=True),
}


@dataclass(frozen=True)
class Point:
    """At a size: microseconds for one unit, and bytes that are held in all."""

    size: int
    spent: float
    held: float


Series = dict[str, list[Point]]
"""By side."""


def spent(run: Callable[[], object], repeats: int = 3) -> float:
    """CPU time in microseconds, the least of several runs."""
    taken: list[int] = []
    for _ in range(repeats):
        gc.collect()
        began = time.thread_time_ns()
        run()
        taken.append(time.thread_time_ns() - began)
    return min(taken) / 1000


def _added(path: Callable[..., Walk], size: int, **options: Any) -> float:
    """Microseconds that the plugin adds to one event of a stream with so many."""
    rounds = max(1, 1000 // size)
    repeats = 3 if size < LONG else 1

    def walk(*, watched: bool) -> float:
        made = path(watched=watched, **options)

        def run() -> None:
            for _ in range(rounds):
                finish(made(size))

        finish(made(1000))
        return spent(run, repeats)

    return (walk(watched=True) - walk(watched=False)) / (rounds * size)


def _held(path: Callable[..., Walk], size: int, **options: Any) -> float:
    """Bytes that the plugin holds while a stream with so many events is open."""

    def weigh(size: int, *, watched: bool) -> int:
        found: list[int] = []
        made = path(watched=watched, in_the_end=lambda: found.append(tracemalloc.get_traced_memory()[0]), **options)
        finish(made(1))
        gc.collect()
        tracemalloc.start(1)
        finish(made(size))
        tracemalloc.stop()
        return found[-1]

    return weigh(size, watched=True) - weigh(min(size, 1000), watched=False)  # what the fakes hold does not grow


def events(sizes: tuple[int, ...]) -> Series:
    """Events on one stream, its opening included."""
    return {
        side: [Point(size, _added(path, size), _held(path, size)) for size in sizes] for side, path in SIDES.items()
    }


def tokens(sizes: tuple[int, ...]) -> Series:
    """The length of event ids, on streams of a hundred events."""

    def long(length: int) -> Callable[[int], str]:
        front = "x" * length
        return lambda number: front + str(number)

    return {
        side: [Point(size, _added(path, 100, ids=long(size)), _held(path, 100, ids=long(size))) for size in sizes]
        for side, path in SIDES.items()
    }


def streams(sizes: tuple[int, ...]) -> Series:
    """Streams that are open and idle: what an event on one more costs, and what they weigh."""
    return {side: [_crowded(side, path, size) for size in sizes] for side, path in SIDES.items()}


def _crowded(side: str, path: Callable[..., Walk], size: int) -> Point:
    def measure(*, watched: bool) -> tuple[float, int]:
        gc.collect()
        tracemalloc.start(1)
        with Crowd(side, watched=watched) as crowd:
            before = tracemalloc.get_traced_memory()[0]
            crowd.open(size)
            weight = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            made = path(watched=watched, hooks=crowd.hooks)
            finish(made(100))
            return spent(lambda: finish(made(1000)), 5) / 1000, weight

    watched, bare = measure(watched=True), measure(watched=False)
    return Point(size, watched[0] - bare[0], watched[1] - bare[1])


def sessions(sizes: tuple[int, ...]) -> Series:
    """Sessions that came and went: what the next one costs, and what is held of all of them."""
    found: Series = {}
    for side in SIDES:
        runs = {watched: one_session(side, watched=watched) for watched in (True, False)}
        for run in runs.values():
            run(100)
        found[side] = []
        done = 0
        tracemalloc.start(1)
        before = tracemalloc.get_traced_memory()[0]
        for size in sizes:
            runs[True](size - done)
            done = size
            gc.collect()
            held = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()  # which forgets what was there before: the weight goes on from here
            took = [spent(partial(runs[watched], 200), 5) / 200 for watched in (True, False)]
            found[side].append(Point(size, took[0] - took[1], held))
            tracemalloc.start(1)
            before = tracemalloc.get_traced_memory()[0] - held
        tracemalloc.stop()
    return found


PARTS: dict[str, tuple[Callable[[tuple[int, ...]], Series], tuple[int, ...]]] = {
    "events on one stream": (events, EVENTS),
    "open streams": (streams, STREAMS),
    "sessions over time": (sessions, SESSIONS),
    "characters of an event id": (tokens, TOKENS),
}


def measure(largest: int = 1_000_000) -> dict[str, Series]:
    """Every part, up to a size."""
    return {title: part(tuple(s for s in sizes if s <= largest)) for title, (part, sizes) in PARTS.items()}


def table(title: str, series: Series) -> str:
    """Markdown."""
    unit = "session" if title.startswith("sessions") else "event"
    heads = " | ".join(f"{side}, µs per {unit} | {side}, KiB held" for side in series)
    lines = [f"| {title} | {heads} |", f"|{'---|' * (1 + 2 * len(series))}"]
    for points in zip(*series.values(), strict=True):
        cells = " | ".join(f"{point.spent:.1f} | {point.held / 1024:.1f}" for point in points)
        lines.append(f"| {points[0].size:,} | {cells} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Prints the tables, and draws the plot if matplotlib is there."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench growth", description=__doc__)
    parser.add_argument("--largest", type=int, default=1_000_000, help="leave out what is larger than that")
    parser.add_argument("--plot", type=Path, default=PLOT, metavar="FILE")
    options = parser.parse_args(arguments)
    found: dict[str, Series] = {}
    for title, (part, sizes) in PARTS.items():
        found[title] = part(tuple(size for size in sizes if size <= options.largest))
        print(f"{table(title, found[title])}\n", flush=True)
    print(scrape.table(scrape.measure()))
    try:
        from tests.bench.plot import draw
    except ImportError:
        print("\nno plot: matplotlib is in the dependency group `bench`")
        return 0
    draw(found, options.plot)
    print(f"\n{options.plot}")
    return 0

"""A scrape with everything at its limit: all streams and events that the ledgers hold, and every series moved."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median
from urllib.request import urlopen

from otel_mcp_resume.plugin import Plugin, Providers
from otel_mcp_resume.rules.terms import Side
from otel_mcp_resume.settings import Settings
from otel_mcp_resume.watch.server import Session
from tests.bench.walked import STANDALONE

__all__ = ["Scrape", "measure", "table"]

ROUNDS = 20


@dataclass(frozen=True)
class Scrape:
    """Milliseconds of CPU time, of client and server together, and of waiting."""

    streams: int
    events: int
    pending: int
    series: int
    size: int
    cpu: float
    wall: float


def measure(rounds: int = ROUNDS) -> Scrape:
    """Fills the ledger, and scrapes over HTTP."""
    settings = replace(Settings(), prometheus_port=0)
    plugin = Plugin(settings, Providers())
    sessions = list(_fill(plugin, settings))
    for side in Side:
        plugin.metrics.begin(side)
    plugin.exporter.start()
    try:
        url = plugin.exporter.url
        assert url is not None
        spent: list[tuple[float, float]] = []
        text = b""
        for _ in range(rounds):
            cpu, wall = time.process_time(), time.perf_counter()
            with urlopen(url) as response:
                text = response.read()
            spent.append((1e3 * (time.process_time() - cpu), 1e3 * (time.perf_counter() - wall)))
    finally:
        plugin.exporter.stop()
        plugin.deadlines.close()
    streams, events = plugin.runtime.server.remembered
    series = len([line for line in text.decode().splitlines() if not line.startswith("#")])
    pending = sum(len(session.pending) for session in sessions)
    return Scrape(streams, events, pending, series, len(text), *map(median, zip(*spent, strict=True)))


def _fill(plugin: Plugin, settings: Settings) -> Iterator[Session]:
    per_session = settings.max_events // settings.max_streams
    for number in range(settings.max_streams):
        session = plugin.runtime.server.session(str(number), standalone=STANDALONE, is_stored=True)
        for event in range(per_session):
            session.storing += 1
            plugin.runtime.report(session.stored(STANDALONE, f"{number}-{event}", 1, f"{event}"))
        yield session


def table(scrape: Scrape) -> str:
    """Markdown."""
    return (
        "| a scrape with | series | size | CPU time | wall |\n|---|---|---|---|---|\n"
        f"| {scrape.streams:,} streams, {scrape.events:,} events, {scrape.pending:,} open requests of the server "
        f"| {scrape.series:,} | {scrape.size / 1024:.0f} kB | {scrape.cpu:.1f} ms | {scrape.wall:.1f} ms |"
    )

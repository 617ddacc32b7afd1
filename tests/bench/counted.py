"""Instructions of real servers and clients, counted by callgrind: what it costs, whatever else the machine does.

One process of each pair is counted at a time, without its garbage collector.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from platform import python_version

from tests.bench.arms import BARE
from tests.bench.instructions import callgrind, is_possible, total
from tests.bench.process import started
from tests.bench.turns import WORKLOADS, Workload

__all__ = ["Counted", "counted", "main", "table"]

SIDES = ("server", "client")
PLUGIN = "plugin"
UNITS = {"stream": 500, "stored": 500, "calls": 100, "resume": 40}
"""Events, calls or resumptions that are counted; as many go before, to warm up. The counted process is fifty times
slower than otherwise."""


@dataclass(frozen=True)
class Counted:
    """Instructions for each event, call or resumption."""

    workload: str
    side: str
    bare: float
    plugin: float

    @property
    def added(self) -> float:
        """By the plugin."""
        return self.plugin - self.bare

    @property
    def ratio(self) -> float:
        """Of what the bare SDK takes."""
        return self.plugin / self.bare


def counted(names: list[str]) -> Iterator[Counted]:
    """Plays the workloads that send messages. Raises `FileNotFoundError` without valgrind."""
    for name in names:
        for side in SIDES:
            bare, plugin = (_count(WORKLOADS[name], side, arm) for arm in (BARE, PLUGIN))
            yield Counted(name, side, bare, plugin)


def _count(workload: Workload, side: str, arm: str) -> float:
    units, nowhere = UNITS[workload.name], "http://127.0.0.1:9"
    with tempfile.TemporaryDirectory() as folder:
        below = {role: [*callgrind(folder), "--instr-atstart=no"] if role == side else [] for role in SIDES}
        with started(SIDES[0], arm, nowhere, below[SIDES[0]], stored=workload.stored, counted=True) as server:
            url = f"http://127.0.0.1:{server.ask()['port']}/mcp"
            with started(SIDES[1], arm, nowhere, below[SIDES[1]], url=url, counted=True) as client:
                client.ask()
                client.ask(do=workload.command, count=units)
                (server if side == "server" else client).count()
                for _ in range(2):  # the first one meets code that is not translated yet
                    server.ask(do="cpu")
                    client.ask(do=workload.command, count=units)
                server.ask(do="cpu")
                dumps = {int(path.suffix[1:]): path for path in Path(folder).glob("out.*")}
                # The marks: two around each turn of a client, one after each of a server.
                return total(dumps[max(dumps)]) / units


def table(found: Iterator[Counted]) -> Iterator[str]:
    """The lines of a table in Markdown, as they become known."""
    yield "| of a real process | bare SDK | added by the plugin | ratio |"
    yield "|---|---|---|---|"
    for each in found:
        title = f"{WORKLOADS[each.workload].title}, {each.side}"
        yield f"| {title} | {each.bare:,.0f} | {each.added:,.0f} | {each.ratio:.3f} |"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench counted", description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"all if none is named: {', '.join(UNITS)}")
    names = parser.parse_args(arguments).workloads or list(UNITS)
    if unknown := sorted(set(names) - set(UNITS)):
        parser.error(f"no such workload: {', '.join(unknown)}")
    if not is_possible():
        parser.error("valgrind is not installed")
    print(f"Instructions. mcp {version('mcp')}, Python {python_version()}\n")
    for line in table(counted(names)):
        print(line, flush=True)
    return 0

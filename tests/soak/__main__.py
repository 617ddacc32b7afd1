"""Real servers and clients for as long as you like, with the plugin and without, side by side.

Streams are cut and resumed, sessions come and go. Every minute a line of CSV for each process. At the end: the memory
of a process with the plugin grew by no more, after the warm-up, than that of its twin without; nothing failed inside.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TextIO

from tests.soak.pair import Pair, Process, pair
from tests.wire.samples import total

COLUMNS = "minute,arm,process,rss_mib,cpu_s,open_streams,open_sessions,attempts,gaps,violations,events,internal_errors"
TOLERATED = 3.0
"""MiB by which the growth of two processes without a leak may differ: what an allocator keeps is a matter of luck."""


@dataclass(frozen=True)
class Row:
    minute: float
    arm: str
    process: str
    resident: float
    numbers: tuple[float, ...]

    def __str__(self) -> str:
        numbers = ",".join(f"{number:g}" for number in self.numbers)
        return f"{self.minute:.1f},{self.arm},{self.process},{self.resident:.2f},{numbers}"

    @property
    def internal_errors(self) -> float:
        return self.numbers[-1]

    @property
    def attempts(self) -> float:
        return self.numbers[3]


async def row(minute: float, arm: str, name: str, process: Process) -> Row:
    samples = await process.samples()
    names = ("open_streams", "open_sessions", "attempts_total")
    numbers = [total(samples, f"mcp_resume_{name}", {}) for name in names]
    numbers.append(total(samples, "mcp_resume_attempts_total", {"outcome": "gap"}))
    rest = ("violations_total", "events_total", "internal_errors_total")
    numbers += [total(samples, f"mcp_resume_{name}", {}) for name in rest]
    return Row(minute, arm, name, process.resident, (process.cpu, *numbers))


def growth(rows: Sequence[Row], arm: str, process: str, warm_up: float) -> float:
    """MiB between the first quarter after the warm-up and the last one, of what each had in the median."""
    curve = [each.resident for each in rows if (each.arm, each.process) == (arm, process) and each.minute >= warm_up]
    part = max(1, len(curve) // 4)
    return median(curve[-part:]) - median(curve[:part])


def judged(rows: Sequence[Row], warm_up: float) -> list[str]:
    """What is wrong."""
    wrong: list[str] = []
    for process in ("server", "client"):
        ours, bare = (growth(rows, arm, process, warm_up) for arm in ("plugin", "bare"))
        print(f"# {process}: {ours:+.2f} MiB with the plugin after the warm-up, {bare:+.2f} without")
        if ours > max(bare, 0) + TOLERATED:
            wrong.append(f"the memory of the {process} grows")
        last = [each for each in rows if (each.arm, each.process) == ("plugin", process)][-1]
        if last.internal_errors:
            wrong.append(f"{last.internal_errors:g} internal errors in the {process}")
        if not last.attempts:
            wrong.append(f"the {process} saw no attempt")
    return wrong


async def soak(options: argparse.Namespace, out: TextIO) -> list[str]:
    rows: list[Row] = []
    async with (
        pair(options.users, options.cut, plugin=True) as plugin,
        pair(options.users, options.cut, plugin=False) as bare,
    ):
        arms: dict[str, Pair] = {"plugin": plugin, "bare": bare}
        began = time.monotonic()
        print(COLUMNS, file=out, flush=True)
        while (minute := (time.monotonic() - began) / 60) < options.minutes:
            await asyncio.sleep(options.every)
            for arm, each in arms.items():
                for name, process in each.processes.items():
                    rows.append(await row((time.monotonic() - began) / 60, arm, name, process))
                    print(rows[-1], file=out, flush=True)
        for arm, each in arms.items():
            each.client.order("tally")
            print(f"# {arm}: {await each.client.said('tally')}, {each.cuts} cuts", file=out, flush=True)
        return judged(rows, min(options.warm_up, minute / 3))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--warm-up", type=float, default=15, help="minutes that are not judged, a third at most")
    parser.add_argument("--every", type=float, default=60, help="seconds between two looks")
    parser.add_argument("--users", type=int, default=2, help="sessions at a time, of each client")
    parser.add_argument("--cut", type=float, default=8, help="seconds between two cuts")
    options = parser.parse_args()
    wrong = asyncio.run(soak(options, sys.stdout))
    print(f"# {'; '.join(wrong) or 'nothing grew, nothing failed'}", flush=True)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

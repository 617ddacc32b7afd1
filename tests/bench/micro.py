"""`python -m tests.bench micro`: what runs for each message and each call, in nanoseconds and in instructions."""

from __future__ import annotations

import argparse
import gc
import time
from statistics import median

from tests.bench.instructions import REFERENCE, baseline, count, is_possible, relative, update
from tests.bench.paths import PATHS
from tests.bench.walked import finish

__all__ = ["main", "nanoseconds"]

ROUNDS = 15


def nanoseconds(rounds: int = ROUNDS) -> dict[str, float]:
    """By title: what the plugin adds to one walk. Bare and watched in turn; the median of the differences."""
    found: dict[str, float] = {}
    for title, (path, times) in PATHS.items():
        walks = path(watched=False), path(watched=True)
        spent: list[float] = []
        for number in range(rounds + 1):
            taken: list[float] = []
            for walk in walks:
                run = walk(times)
                began = time.thread_time_ns()
                finish(run)
                taken.append((time.thread_time_ns() - began) / times)
            if number:
                spent.append(taken[1] - taken[0])
        found[title] = median(spent)
    return found


def main(arguments: list[str]) -> int:
    """Prints a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench micro", description=__doc__)
    parser.add_argument("--update", action="store_true", help="commit to these counts for this version of Python")
    options = parser.parse_args(arguments)
    gc.disable()
    times = nanoseconds()
    gc.enable()
    counts = count() if is_possible() else {}
    if options.update:
        update(counts)
    ratios, known = (relative(counts), baseline()) if counts else ({}, {})
    print("| added to | ns | instructions | in units of the reference | committed |\n|---|---|---|---|---|")
    for title, spent in times.items():
        told = f"{counts[title]:.0f} | {ratios[title]:.2f} | {known.get(title, 0):.2f}" if counts else " | | "
        print(f"| {title} | {spent:.0f} | {told} |")
    if counts:
        print(f"\nThe reference: {counts[REFERENCE]:.0f} instructions.")
    return 0

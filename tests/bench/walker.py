"""The process that callgrind watches: every path, bare and watched, with a mark before and after. Run as a script."""

from __future__ import annotations

import gc
import os

from tests.bench.paths import PATHS, reference
from tests.bench.walked import Walk, finish

__all__: list[str] = []

WARM = 50


def part(name: str, walk: Walk, times: int) -> None:
    """One part between two marks; what came before it, its warming up among that, is another dump's."""
    finish(walk(WARM))
    gc.collect()
    run = walk(times)
    os.getppid()
    finish(run)
    os.getppid()
    print(name, times, sep="\t", flush=True)


def main() -> None:
    gc.disable()  # when it runs depends on everything that was imported
    part("reference", reference(), 3000)
    for title, (path, times) in PATHS.items():
        part(f"{title}: bare", path(watched=False), times)
        part(f"{title}: watched", path(watched=True), times)


main()

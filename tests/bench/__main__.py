"""`python -m tests.bench`: the command line of the benchmark."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

from tests.bench import counted, figures, growth, many, micro, startup, streams, turns
from tests.bench.arms import AGAIN, BARE, available
from tests.bench.sink import sink

__all__: list[str] = []

NAMES = (*turns.WORKLOADS, "streams", "startup")
WEIGHED = (BARE, "plugin", "spans")
MANY = (BARE, "plugin")


def play(name: str, arms: list[str], address: str, *, quick: bool, count: int = 0) -> tuple[str, Any]:
    """A workload's table, and its figures for JSON."""
    if name == "streams" and count:
        held = [many.hold(arm, address, count) for arm in MANY if arm in arms]
        return many.table(held), [asdict(each) for each in held]
    if name == "startup":
        starts = startup.run(quick=quick)
        return startup.table(starts), [asdict(each) for each in starts]
    if name == "streams":
        weights = streams.weigh([arm for arm in WEIGHED if arm in arms], address, quick=quick)
        return streams.table(weights), [asdict(each) for each in weights]
    workload = turns.WORKLOADS[name]
    found = figures.figures(turns.run(workload, arms, address, quick=quick))
    return figures.table(workload.title, found), figures.as_json(found)


def compare(options: argparse.Namespace) -> int:
    arms = [arm for arm in available() if arm in {BARE, AGAIN, *options.arms}] if options.arms else available()
    versions = f"mcp {version('mcp')}, Python {python_version()}"
    result: dict[str, Any] = {"versions": versions}
    print(versions)
    with sink() as address:
        for name in options.workloads or NAMES:
            shown, result[name] = play(name, arms, address, quick=options.quick, count=options.streams)
            print(f"\n{shown}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


def main() -> int:
    if sys.argv[1:2] == ["micro"]:
        return micro.main(sys.argv[2:])
    if sys.argv[1:2] == ["growth"]:
        return growth.main(sys.argv[2:])
    if sys.argv[1:2] == ["counted"]:
        return counted.main(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.epilog = (
        "`python -m tests.bench micro` counts what runs for each message and call, `python -m tests.bench counted` "
        "what real processes run, `python -m tests.bench growth` tells how that grows. Each has a --help of its own."
    )
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"all if none is named: {', '.join(NAMES)}")
    parser.add_argument("--arms", nargs="+", choices=available(), help="beside the bare SDK; all that are installed")
    parser.add_argument("--streams", type=int, default=0, metavar="N", help="hold so many in the workload `streams`")
    parser.add_argument("--quick", action="store_true", help="a tenth of it, good for gross regressions only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the figures to")
    options = parser.parse_args()
    if unknown := sorted(set(options.workloads) - set(NAMES)):
        parser.error(f"no such workload: {', '.join(unknown)}")
    return compare(options)


if __name__ == "__main__":
    sys.exit(main())

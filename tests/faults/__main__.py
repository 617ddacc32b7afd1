"""Plants a fault at every point that a play passes, one at a time, and prints what came of it.

raise      the point raises an error
nonsense   it returns an object that is nothing at all
interrupt  it raises what is no `Exception`, as Ctrl-C and cancellation do: nobody of us may catch that
hang       a library call in a thread of ours blocks for a while
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.faults import sites

warnings.simplefilter("ignore")
sites.install()

from tests.faults import client_play, server_play  # noqa: E402 - the package is imported by them, through the planter
from tests.faults.stage import Seen, play_bare, play_with, unexpected  # noqa: E402 - see above

PLAYS = {"client": client_play.play, "server": server_play.play}
STUCK = 120.0
"""Seconds in which a play ends on any machine."""
HANG = 0.4
"""Seconds, each of the first three times."""
MODES = ("raise", "nonsense", "interrupt", "hang")
BLOCKING = frozenset(
    ("accept", "acquire", "connect", "flush", "force_flush", "getaddrinfo", "handle_request", "join", "recv", "select")
) | {"send", "sendall", "shutdown", "sleep", "wait"}
"""Names of functions that may wait for something else."""
WALL = {
    "sdk.guard": "what catches everything else",
    "report.errors": "what counts and writes down everything else",
}
REMOVAL = {"Plugin.close", "Plugin._close", "Turns.run", "Patches.remove_all", "_detach"}
"""What takes the hooks away. If it fails before it has begun there is nobody else to do it; the hooks go on working."""

HANDED_BACK = ("context.attach",)
"""Calls whose result goes back to the library that gave it: what that makes of its own nonsense is its own affair."""


class PlantedError(Exception):
    """What a point raises."""


class Interruption(BaseException):
    """What no `except Exception` catches."""


class Nonsense:
    """What nobody expects."""

    __slots__ = ()


class Fault:
    """What happens at the planted point."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.struck = 0

    def __call__(self, site: sites.Site) -> Any:
        self.struck += 1
        if self.mode == "raise":
            raise PlantedError(str(site))
        if self.mode == "interrupt":
            raise Interruption(str(site))
        if self.mode == "nonsense":
            return Nonsense()
        if self.struck <= 3:
            time.sleep(HANG)
        return sites.GO_ON


def reached(side: str) -> list[sites.Site]:
    """The points of our code that the play passes while the plugin is there."""
    for site in sites.sites:
        site.seen.clear()
    sites.phase = "on"
    play_with(PLAYS[side], structured=side == "server")
    gc.freeze()
    points = [site for site in sites.sites if site.seen and (not site.is_call or site.libraries)]
    # What comes before and after the play is the same for both.
    return [site for site in points if side == "client" or any(phase == "play" for phase, _ in site.seen)]


def suits(site: sites.Site, mode: str) -> bool:
    if site.room in WALL and not site.is_call:
        return False
    if mode == "hang":
        return site.is_call and all(thread != "MainThread" for phase, thread in site.seen if phase == "play")
    return mode != "nonsense" or (site.gives and not site.name.endswith(HANDED_BACK))


def sweep(side: str, mode: str, points: Sequence[sites.Site], bare: Seen) -> tuple[Counter[str], list[str]]:
    """Points that were tested, by room, and what escaped."""
    rooms: Counter[str] = Counter()
    escapes: list[str] = []
    missed: list[str] = []
    for number, site in enumerate(points, 1):
        if number % 50 == 0:
            print(f"# {number} of {len(points)}", flush=True)
        fault = Fault(mode)
        sites.planted, sites.take = site, fault
        watch = threading.Timer(STUCK, _stuck, (f"{side} {mode} {site}",))
        watch.daemon = True
        watch.start()
        seen = play_with(PLAYS[side], structured=side == "server")
        watch.cancel()
        sites.planted = None
        rooms[site.room] += bool(fault.struck)
        is_removal = site.name.partition(":")[0] in REMOVAL
        wrong = unexpected(seen, bare, is_removal=is_removal) if mode != "interrupt" else []
        if not fault.struck:
            missed.append(str(site))  # a matter of timing
        if mode == "raise" and seen.is_on and seen.counted > fault.struck:
            wrong.append(f"struck {fault.struck} times, counted {seen.counted:g} times")
        if mode == "interrupt" and (seen.counted or seen.records):
            wrong.append("taken for a fault of ours")
        escapes += [f"{side} {mode} {site}: {each}" for each in wrong]
        if wrong:
            print("!", escapes[-1], flush=True)
        if mode == "raise" and seen.is_on and not seen.counted:
            print(f"- not counted: {side} {site}, {fault.struck} times", flush=True)
    if missed:
        print(f"# passed in the first play, and not in the one with the fault: {', '.join(missed)}")
    return rooms, escapes


def _stuck(point: str) -> None:
    """The play does not end any more: an escape, and nothing can be tested in this process after it."""
    print(f"! {point}: the application hangs", flush=True)
    faulthandler.dump_traceback()
    os._exit(1)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exits with 1 if a fault escaped, and with 2 if nothing was tested. It is ten minutes of CPU time.",
    )
    parser.add_argument("--side", action="append", choices=sorted(PLAYS), help="may be given again; both by default")
    parser.add_argument("--mode", action="append", choices=MODES, help="may be given again; all by default")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="only one point in N, always the same")
    parser.add_argument("--offset", type=int, default=0, metavar="K", help="which of the N shares, from 0")
    parser.add_argument("--only", default="", metavar="TEXT", help="only points with this in their names")
    parser.add_argument("--list", action="store_true", help="print the points of each side before they are tested")
    options = parser.parse_args()
    if not 0 <= options.offset < options.share:
        parser.error(f"there are the shares 0 to {options.share - 1} of {options.share}")
    total: Counter[tuple[str, str, str]] = Counter()
    escapes: list[str] = []
    for side in options.side or sorted(PLAYS):
        points = [site for site in reached(side) if options.only in str(site)]
        bare = play_bare(PLAYS[side])
        blocking = [
            str(site)
            for site in points
            if site.is_call and site.name.rpartition(".")[2] in BLOCKING and ("play", "MainThread") in site.seen
        ]
        escapes += [f"{side}: may block the event loop: {name}" for name in blocking]
        if options.list:
            print(*points, sep="\n")
        for mode in options.mode or MODES:
            wanted = [site for site in points if suits(site, mode) and site.is_in(options.share, options.offset)]
            began = time.monotonic()
            rooms, found = sweep(side, mode, wanted, bare)
            print(f"# {side} {mode}: {len(wanted)} points in {time.monotonic() - began:.0f} s", flush=True)
            total.update({(side, room, mode): count for room, count in rooms.items()})
            escapes += found
    print_table(total, escapes)
    if not total.total():
        print("no point was tested", file=sys.stderr)
        return 2
    return int(bool(escapes))


def print_table(total: Counter[tuple[str, str, str]], escapes: Sequence[str]) -> None:
    print(f"{'side':8}{'room':24}" + "".join(f"{mode:>11}" for mode in MODES) + f"{'escapes':>9}")
    for side, room in sorted({key[:2] for key in total}):
        counts = "".join(f"{total[side, room, mode]:11}" for mode in MODES)
        escaped = sum(each.startswith(f"{side} ") and f" {room}:" in each for each in escapes)
        print(f"{side:8}{room:24}{counts}{escaped:9}")
    counts = "".join(f"{sum(n for key, n in total.items() if key[2] == mode):11}" for mode in MODES)
    print(f"{'all':32}{counts}{len(escapes):9}")
    for each in escapes:
        print(each)


if __name__ == "__main__":
    sys.exit(main())

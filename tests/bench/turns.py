"""The workloads that send messages: every arm has its server and its client, and all arms take small turns."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.bench.arms import AGAIN, ARMS, BARE
from tests.bench.process import Child, ChildError, started

__all__ = ["SIDES", "WORKLOADS", "Samples", "Workload", "run"]

SIDES = ("server", "client", "wall")
"""CPU time of either process, and the time that passed for the client."""
Samples = dict[str, dict[str, list[float]]]
"""By arm and side: microseconds per event, call or resume, one figure for each turn."""


@dataclass(frozen=True)
class Workload:
    """What is done, how often in a turn, and in how many turns."""

    name: str
    title: str
    command: str
    per_turn: int
    turns: int
    quick_turns: int
    stored: bool = False
    messages: int = 0
    """Notifications that one unit brings."""
    attempts: int = 0
    """Resumptions that one unit makes."""


WORKLOADS = {
    each.name: each
    for each in (
        Workload("stream", "event of a stream", "burst", 500, 40, 6, messages=1),
        Workload("stored", "event of a stream, with an event store", "burst", 500, 40, 6, stored=True, messages=1),
        Workload("calls", "tool call", "echo", 50, 60, 6),
        Workload("resume", "cut and resumed call", "cut", 10, 40, 3, stored=True, messages=3, attempts=1),
    )
}


@dataclass(frozen=True)
class Pair:
    """The two processes of one arm."""

    arm: str
    server: Child
    client: Child

    def turn(self, workload: Workload) -> tuple[float, ...]:
        """Microseconds per unit on each side."""
        before = self.server.ask(do="cpu")["cpu"]
        done = self.client.ask(do=workload.command, count=workload.per_turn)
        server = self.server.ask(do="cpu")["cpu"] - before
        if done["heard"] != workload.per_turn * workload.messages:
            raise ChildError(f"{self.arm}: {done['heard']} messages came in one turn of {workload.name}")
        return tuple(1e6 * seconds / workload.per_turn for seconds in (server, done["cpu"], done["wall"]))

    def check(self, workload: Workload, turns: int) -> None:
        """Raises `ChildError` if the plugin did not watch, or if a bare arm was not bare."""
        units = workload.per_turn * turns
        for side in (self.server, self.client):
            counted = side.ask(do="checks")
            is_watched = self.arm in ("plugin", "spans")
            if bool(counted) != is_watched:
                raise ChildError(f"{self.arm}: the plugin is {'not ' if is_watched else ''}on")
            if not counted:
                continue
            expected = units * workload.messages, units * workload.attempts
            if counted["errors"] or counted["events"] < expected[0] or counted["proven"] != expected[1]:
                raise ChildError(f"{self.arm}: {expected} events and resumptions were made, and counted: {counted}")


@contextlib.contextmanager
def _pair(arm: str, sink: str, *, stored: bool) -> Iterator[Pair]:
    with started("server", arm, sink, stored=stored) as server:
        url = f"http://127.0.0.1:{server.ask()['port']}/mcp"
        with started("client", arm, sink, url=url) as client:
            client.ask()
            yield Pair(arm, server, client)


def run(workload: Workload, arms: Sequence[str], sink: str, *, quick: bool = False) -> Samples:
    """Plays the workload. The first turn of each arm warms up and is not counted."""
    turns = workload.quick_turns if quick else workload.turns
    samples: Samples = {arm: {side: [] for side in SIDES} for arm in arms}
    order = random.Random(0)
    with contextlib.ExitStack() as stack:
        pairs = [stack.enter_context(_pair(arm, sink, stored=workload.stored)) for arm in arms]
        for number in range(turns + 1):
            order.shuffle(pairs)  # whoever follows a slow arm would always find a cold machine
            for pair in pairs:
                figures = pair.turn(workload)
                if number:
                    for side, figure in zip(SIDES, figures, strict=True):
                        samples[pair.arm][side].append(figure)
        for pair in pairs:
            pair.check(workload, turns + 1)
    return samples


assert {BARE, AGAIN} <= set(ARMS)

"""What runs for each message and for each call, driven by hand: the hooks between fakes that cost next to nothing.

Every path can be walked with our hooks and without them. No SDK is imported, so that a run under valgrind is short, and
no event loop runs: a fake never waits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.bench.client_paths import client_call, client_event
from tests.bench.server_paths import server_call, server_event
from tests.bench.walked import BODY, Walk

__all__ = ["PATHS", "reference"]

PATHS: dict[str, tuple[Callable[..., Walk], int]] = {
    "server, event": (partial(server_event, stored=False), 1500),
    "server, event with store": (partial(server_event, stored=True), 1500),
    "client, event": (partial(client_event, with_ids=False), 1500),
    "client, event with id": (partial(client_event, with_ids=True), 1500),
    "server, call": (server_call, 150),
    "client, call": (client_call, 150),
}
"""By title: what makes the path, and how often it is walked at once."""


def reference() -> Walk:
    """Work of the same kind that is none of ours: what is counted is told in units of it."""

    class Thing:
        __slots__ = ("seen", "total")

        def __init__(self) -> None:
            self.seen: dict[str, int] = {}
            self.total = 0

        def note(self, name: str) -> int:
            self.total += 1
            self.seen[name] = self.total
            return self.total

    async def told(thing: Thing, number: int) -> bool:
        try:
            return thing.note(str(number)) > 0 and BODY.find(b"\ndata: ") > 0
        except ValueError:
            return False

    async def walk(times: int) -> None:
        thing = Thing()
        for number in range(times):
            await told(thing, number)

    return walk

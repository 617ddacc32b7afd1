"""One part of the roll while it is played, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.peers.balancer import Way
from tests.peers.roll_logs import Attempt, arrivals, attempts_in, lines, re_openings
from tests.peers.roll_stage import Fleet, Helper, until
from tests.peers.roll_wire import Relay

__all__ = ["CLIENTS", "Part", "Play"]

CLIENTS = 20


@dataclass(frozen=True)
class Part:
    """What is played, and all outcomes that either side gives."""

    title: str
    way: Way
    client: frozenset[str]
    server: frozenset[str]
    rolls: int = 1
    kind: str = "manager"

    @property
    def is_steady(self) -> bool:
        """Else a session works by chance."""
        return self.way in (Way.BY_CLIENT, Way.IMPATIENT)


@dataclass
class Play:
    """The processes and the relay of a part, and after it the attempts that reached the instances, and all records."""

    part: Part
    fleet: Fleet
    relay: Relay
    arrived: Counter[Attempt] = field(default_factory=Counter[Attempt])
    server: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    client: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _crowd: Helper = field(kw_only=True)
    _log: Path = field(kw_only=True)
    _before: int = field(kw_only=True)

    @classmethod
    @asynccontextmanager
    async def of(cls, part: Part, nursery: Helper, crowd: Helper, log: Path) -> AsyncIterator[Play]:
        """Before the end of the block, all clients have left. `log` is theirs, and that of other parts before."""
        fleet = Fleet(nursery, log.with_name(f"{part.way.name}-{part.kind}"), part.kind)
        async with fleet.up(part.way) as port, Relay(port).up() as relay:
            play = cls(part, fleet, relay, _crowd=crowd, _log=log, _before=len(lines(log)))
            yield play
            await fleet.settled()
        play.client = play._client_records()
        for instance in fleet.started:
            play.arrived += arrivals(lines(instance.with_suffix(".wire")))
            play.server += lines(instance.with_suffix(".verdicts"))

    def stored(self, text: str) -> bool:
        """Whether an instance stored a message with this text."""
        notes = (note for instance in self.fleet.started for note in lines(instance.with_suffix(".wire")))
        return any(note["what"] == "stored" and text in note["text"] for note in notes)

    def carried(self, text: str) -> bool:
        """Whether a message with this text went to a client."""
        return text.encode() in self.relay.carried

    async def tell(self, verb: str, who: str = "all", *words: object) -> int:
        """How many clients did it."""
        return int(await self._crowd.order(verb, who, *words))

    async def join(self) -> None:
        """Every client begins a session, and its own stream is answered, in one way or the other."""
        mark = len(self.relay.gets)
        assert await self.tell("join", "all", f"http://127.0.0.1:{self.relay.port}/mcp") == CLIENTS
        await until(lambda: len({get.session for get in self.relay.gets[mark:]}) >= CLIENTS, "first GETs are answered")

    async def hold(self) -> None:
        """No re-opening is under way from now on, until the relay lets go."""
        self.relay.hold()
        await until(lambda: not self.relay.under_way, "what is under way is answered")

    async def leave(self) -> None:
        """Every client leaves when it has counted what it got an answer to. What is held back never gets one."""
        await self.hold()
        await until(lambda: self._differences() == ({}, {}), lambda: f"{self.part.title}: {self._differences()}")
        assert await self.tell("leave") == CLIENTS
        self.relay.let_go(pass_on=False)

    def will_return(self, place: int) -> set[str]:
        """The sessions whose standalone stream an instance holds, and the SDK opens again when it is cut.

        It gives up at the second failure, and a first GET that was refused, as happens without stickiness, is one.
        """
        refused = {get.session for get in self.relay.gets if not 200 <= get.status < 300}
        return self.fleet.holders(place, "GET") - refused

    async def roll(self, *, hard: bool) -> None:
        """Both instances are replaced, and every stream that was cut is opened again once at least."""
        mark = len(self.relay.gets)
        for place in range(2):
            await self.hold()
            streams, calls = self.will_return(place), self.fleet.holders(place, "POST")
            await self.fleet.end(place, hard=hard)
            self.relay.let_go()
            await self.fleet.start(place)
            await until(
                lambda: streams <= {get.session for get in self.relay.gets[mark:]},  # noqa: B023 - in this turn
                "streams are opened again",
            )
            await until(
                lambda: calls <= {get.session for get in self.relay.gets[mark:] if get.token},  # noqa: B023
                "calls are taken up",
            )

    def _client_records(self) -> list[dict[str, Any]]:
        return lines(self._log)[self._before :]

    def _differences(self) -> tuple[dict[Attempt, int], dict[Attempt, int]]:
        """Attempts that the clients did not count, and what they counted beyond them."""
        wire, counted = re_openings(self.relay.gets), attempts_in(self._client_records())
        return dict(wire - counted), dict(counted - wire)

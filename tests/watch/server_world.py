"""A server played by hand against the watch: literal messages, a clock that stands still, deadlines that obey."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from otel_mcp_resume.rules.terms import Generation, Outcome, Reason, Stream, UndeliveredCause, ViolationRule
from otel_mcp_resume.watch.facts import (
    AttemptSettled,
    DuplicateEvent,
    EventsUndelivered,
    Fact,
    PendingRequests,
    Violated,
)
from otel_mcp_resume.watch.server import End, Exchange, Request, ServerWatch, Session
from otel_mcp_resume.watch.server_replay import Replay
from otel_mcp_resume.watch.server_session import NOTIFICATION, REQUEST, RESPONSE

__all__ = ["GET_STREAM", "Wire", "World", "seen_and_cut"]

GET_STREAM = "_GET_stream"
F = TypeVar("F")


@dataclass
class Limits:
    max_streams: int = 20_000
    max_events: int = 200_000


class Obedient:
    """Deadlines that pass when the test says so."""

    def __init__(self) -> None:
        self.open: dict[int, Any] = {}

    def add(self, item: Any) -> None:
        self.open[id(item)] = item

    def forget(self, item: Any) -> None:
        self.open.pop(id(item), None)

    def pass_all(self) -> None:
        for key, item in list(self.open.items()):
            del self.open[key]
            item.expire()


class World:
    """One process with a server in it."""

    def __init__(self, max_streams: int = 20_000, max_events: int = 200_000) -> None:
        self.now = 100.0
        self.facts: list[Fact] = []
        self.counted: Counter[tuple[Generation, Stream]] = Counter()
        self.deadlines = Obedient()
        self.ids = count(1)
        self.watch = ServerWatch(
            emit=self.take,
            events=self._events,
            deadlines=self.deadlines,  # type: ignore[arg-type]
            limits=Limits(max_streams, max_events),
            clock=lambda: self.now,
        )

    def _events(self, generation: Generation, stream: Stream) -> Callable[[], None]:
        def increment() -> None:
            self.counted[generation, stream] += 1

        return increment

    def take(self, facts: Iterable[Fact]) -> None:
        self.facts += facts

    def session(self, session_id: str | None = "A", *, stored: bool = True, json: bool = False) -> Session:
        """A session whose handshake is done."""
        session = self.watch.session(session_id, standalone=GET_STREAM, is_stored=stored, is_json=json)
        post = self.post(session, "init", session_id=None)
        session.inbox.initialized("tester 1")
        self.emit(session, "init", kind=RESPONSE, rpc_id="init")
        post.write()
        post.end(finished=True)
        return session

    def post(self, session: Session, name: str, *, session_id: str | None = "A", status: int = 200) -> Wire:
        wire = Wire(self, self.watch.exchange(Request("POST", session_id=session_id, peer=("peer",))))
        session.serve(wire.exchange)
        if session.is_stored:
            session.storing += 1
            self.take(session.primed(name, str(next(self.ids))))
        self.take(session.registered(name, wire.exchange))
        return wire.head(status, session.session_id)

    def get(self, session: Session, token: str | None = None, *, live: bool = True, header: str | None = "A") -> Wire:
        """A GET. Without a token it goes live at once."""
        wire = Wire(self, self.watch.exchange(Request("GET", session_id=header, token=token)))
        session.serve(wire.exchange)
        wire.head(200, session.session_id)
        if token is None and live:
            self.take(session.registered(GET_STREAM, wire.exchange))
        return wire

    def emit(
        self, session: Session, name: str = GET_STREAM, kind: int = NOTIFICATION, rpc_id: str = "", event_id: str = ""
    ) -> str:
        """The router has a message for a stream. The id that the store gives it, if there is one."""
        if not session.is_stored:
            self.take(session.emitted(name, kind, rpc_id))
            return ""
        event_id = event_id or str(next(self.ids))
        session.storing += 1
        self.take(session.stored(name, event_id, kind, rpc_id))
        return event_id

    def ask(self, session: Session, rpc_id: str, name: str = GET_STREAM) -> str:
        return self.emit(session, name, REQUEST, rpc_id)

    def replayed(self, session: Session, token: str, ids: Iterable[str], name: str = GET_STREAM) -> Wire:
        """A resumption whose replay hands `ids` over, writes them, and goes live."""
        wire = self.get(session, token)
        wire.replay(session, ids).returned(name)
        self.take(session.registered(name, wire.exchange))
        return wire

    def end(self, session: Session) -> None:
        self.take(session.end())

    # -- what came of it -------------------------------------------------------------------------

    def of(self, kind: type[F]) -> list[F]:
        return [fact for fact in self.facts if isinstance(fact, kind)]

    @property
    def verdicts(self) -> list[tuple[Outcome, Reason]]:
        return [(fact.outcome, fact.reason) for fact in self.of(AttemptSettled)]

    @property
    def violations(self) -> list[ViolationRule]:
        return [fact.rule for fact in self.of(Violated)]

    @property
    def undelivered(self) -> dict[UndeliveredCause, int]:
        counts: Counter[UndeliveredCause] = Counter()
        for fact in self.of(EventsUndelivered):
            counts[fact.cause] += fact.count
        return dict(counts)

    @property
    def duplicates(self) -> list[str]:
        return [fact.kind.value for fact in self.of(DuplicateEvent)]

    @property
    def pending(self) -> int:
        return sum(fact.change for fact in self.of(PendingRequests))


@dataclass
class Wire:
    """The connection of one exchange."""

    world: World
    exchange: Exchange
    written: int = field(default=0)

    def head(self, status: int, session_id: str | None, *, event_stream: bool = True) -> Wire:
        self.world.take(self.exchange.head(status, event_stream=event_stream, session_id=session_id))
        return self

    def write(self, messages: int = 1) -> Wire:
        for _ in range(messages):
            self.world.take(self.exchange.wrote())
            self.written += 1
        return self

    def replay(self, session: Session, ids: Iterable[str], *, write: bool = True) -> Replaying:
        replaying = Replaying(self.world, session.replay(self.exchange), session)
        for event_id in ids:
            replaying.handed(event_id)
            if write:
                self.write()
        return replaying

    def end(self, *, finished: bool = False, left: bool = True) -> None:
        self.world.take(self.exchange.ended(End(finished=finished, left=left)))

    def drop(self, session: Session, name: str = GET_STREAM) -> None:
        """The peer is gone: the SDK takes the stream out of its registry."""
        session.unregistered(name)
        self.end()


@dataclass
class Replaying:
    world: World
    replay: Replay
    session: Session

    def handed(self, event_id: str | None) -> None:
        self.replay.handed(event_id)

    def returned(self, name: str | None) -> None:
        self.world.take(self.replay.returned(name))


def seen_and_cut(world: World) -> tuple[Session, str]:
    """A session whose standalone stream was cut after one message."""
    session = world.session()
    wire = world.get(session)
    seen = world.emit(session)
    wire.write().drop(session)
    world.facts.clear()
    return session, seen

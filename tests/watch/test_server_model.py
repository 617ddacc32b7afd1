"""The ledger against a model of the SDK's server that knows what was really written.

The client reads all that is written before it is cut, so its token is the last id on the wire. Connections are cut at
any moment, the store is as slow as it likes, and messages are emitted whenever the server pleases.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from otel_mcp_resume.rules.terms import Outcome, Reason
from otel_mcp_resume.watch.facts import AttemptSettled, Violated
from tests.watch.server_world import GET_STREAM, Replaying, Wire, World

STREAMS = (GET_STREAM, "5", "6")
Verdict = tuple[Outcome, Reason, Union[int, None]]


@dataclass
class Connection:
    wire: Wire
    pipe: list[str] = field(default_factory=list)


@dataclass
class Resuming:
    """A resumption whose replay is under way."""

    connection: Connection
    replaying: Replaying
    token: str
    todo: list[str]
    handed: list[str] = field(default_factory=list)


class Server(RuleBasedStateMachine):
    """One session. `rows` is its event store, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.session = self.world.session()
        self.rows: list[tuple[str, str]] = []
        """What the store has taken, in its order."""
        self.known: list[tuple[str, str]] = []
        """What the store has returned an id for, in that order."""
        self.storing: tuple[str, str] | None = None
        """The router is serial: it waits for one call of the store at a time."""
        self.waiting: dict[str, Verdict] = {}
        """Verdicts that wait until the store has told the id of what it replayed."""
        self.written: set[str] = set()
        self.last: dict[str, str] = {}
        self.live: dict[str, Connection] = {}
        self.resuming: dict[str, Resuming] = {}
        self.primed: set[str] = set()
        self.passed: set[str] = set()
        """Never written, and the client is past them: counted."""
        self.passed_at_opening: set[str] = set()
        self.is_reopening = False
        self.expected: list[Verdict] = []
        self.ended = False

    @initialize()
    def calls_begin(self) -> None:
        for name in STREAMS[1:]:
            self.live[name] = Connection(self.world.post(self.session, name))

    # -- the server ------------------------------------------------------------------------------

    @precondition(lambda self: self.storing is None)
    @rule(name=st.sampled_from(STREAMS), taken=st.booleans())
    def begin_to_emit(self, name: str, *, taken: bool) -> None:
        """The store may take a message long before it returns its id, or only then."""
        self.storing = name, str(next(self.world.ids))
        self.session.storing += 1
        if taken:
            self.rows.append(self.storing)

    @precondition(lambda self: self.storing is not None)
    @rule()
    def emitted(self) -> None:
        assert self.storing is not None
        name, event_id = self.storing
        if self.storing not in self.rows:
            self.rows.append(self.storing)
        self.known.append(self.storing)
        self.storing = None
        self.world.take(self.session.stored(name, event_id))
        if name in self.live:
            self.live[name].pipe.append(event_id)
        if name in self.waiting:
            self.expected.append(self.waiting.pop(name))

    @precondition(lambda self: self.storing is None)
    @rule(name=st.sampled_from(STREAMS))
    def emit(self, name: str) -> None:
        self.begin_to_emit(name, taken=True)
        self.emitted()

    @rule(name=st.sampled_from(STREAMS))
    def prime(self, name: str) -> None:
        if name not in self.resuming or self.resuming[name].todo:
            return
        event_id = str(next(self.world.ids))
        self.session.storing += 1
        self.world.take(self.session.primed(name, event_id))
        self.resuming[name].connection.wire.exchange.primed(event_id)
        self.rows.append((name, event_id))
        self.known.append((name, event_id))
        self.primed.add(event_id)
        self._wrote(name, event_id)

    @rule(name=st.sampled_from(STREAMS), everything=st.booleans())
    def write(self, name: str, *, everything: bool) -> None:
        connection = self.live.get(name)
        while connection is not None and connection.pipe:
            connection.wire.write()
            event_id = connection.pipe.pop(0)
            self._wrote(name, event_id)
            self._pass(name, event_id)
            if not everything:
                return

    # -- the client ------------------------------------------------------------------------------

    @rule(name=st.sampled_from(STREAMS))
    def cut(self, name: str) -> None:
        connection = self.live.pop(name, None)
        if connection is not None:
            connection.wire.drop(self.session, name)
            self._settle_waiting(name)

    @precondition(lambda self: GET_STREAM not in self.live and GET_STREAM not in self.resuming)
    @rule()
    def open_without_token(self) -> None:
        self.live[GET_STREAM] = Connection(self.world.get(self.session))
        if self.is_reopening:
            never = {event for name, event in self.known if name == GET_STREAM} - self.written
            owed = len(never - self.passed_at_opening)
            verdict = (Outcome.GAP, Reason.UNDELIVERED, owed) if owed else (Outcome.PROVEN, Reason.NOTHING_OWED, None)
            self.expected.append(verdict)
        self._opened(GET_STREAM)

    @rule(name=st.sampled_from(STREAMS))
    def resume(self, name: str) -> None:
        if name in self.live or name in self.resuming or name not in self.last:
            return
        token = self.last[name]
        wire = self.world.get(self.session, token)
        todo = [event for event in _after(self.rows, name, token) if event not in self.primed]
        connection = Connection(wire)
        self.resuming[name] = Resuming(connection, wire.replay(self.session, []), token, todo)

    @rule(name=st.sampled_from(STREAMS))
    def replay_one(self, name: str) -> None:
        resuming = self.resuming.get(name)
        if resuming is not None and resuming.todo:
            event_id = resuming.todo.pop(0)
            resuming.replaying.handed(event_id)
            resuming.handed.append(event_id)
            resuming.connection.wire.write()
            self._wrote(name, event_id)

    @rule(name=st.sampled_from(STREAMS))
    def go_live(self, name: str) -> None:
        resuming = self.resuming.get(name)
        if resuming is None or resuming.todo:
            return
        del self.resuming[name]
        resuming.replaying.returned(name)
        self.world.take(self.session.registered(name, resuming.connection.wire.exchange))
        self.live[name] = resuming.connection
        self._expect(name, resuming.token, resuming.handed)
        known = {event for _, event in self.known}
        for event_id in (resuming.token, *(event for event in resuming.handed if event in known)):
            self._pass(name, event_id)
        self._opened(name)

    @rule(name=st.sampled_from(STREAMS))
    def cut_in_the_middle(self, name: str) -> None:
        resuming = self.resuming.pop(name, None)
        if resuming is not None:
            resuming.connection.wire.end()
            self._expect(name, resuming.token, resuming.handed)
            self._settle_waiting(name)

    def _settle_waiting(self, name: str) -> None:
        """A connection that ends waits for no store call."""
        if name in self.waiting:
            self.expected.append(self.waiting.pop(name))

    def _expect(self, name: str, token: str, handed: list[str]) -> None:
        owed = [event for event in _after(self.known, name, token) if event not in self.primed]
        missing = sum(event not in handed for event in owed)
        if missing:
            self.expected.append((Outcome.GAP, Reason.UNDELIVERED, missing))
            return
        verdict = (Outcome.PROVEN, Reason.REPLAY_COMPLETE if owed else Reason.NOTHING_OWED, None)
        if self.storing is not None and self.storing[1] in handed:
            self.waiting[name] = verdict
        else:
            self.expected.append(verdict)

    # -- the model -------------------------------------------------------------------------------

    def _wrote(self, name: str, event_id: str) -> None:
        self.written.add(event_id)
        self.last[name] = event_id

    def _pass(self, name: str, event_id: str) -> None:
        """The client has what was written up to `event_id`, and will not ask for what comes before."""
        place = self.known.index((name, event_id))
        self.passed |= {event for stream, event in self.known[:place] if stream == name} - self.written

    def _opened(self, name: str) -> None:
        if name == GET_STREAM:
            self.is_reopening = True
            self.passed_at_opening = set(self.passed)

    # -- what must hold --------------------------------------------------------------------------

    @invariant()
    def verdicts_are_those_of_the_model(self) -> None:
        settled = [(fact.outcome, fact.reason, fact.missed_events) for fact in self.world.of(AttemptSettled)]
        assert settled == self.expected

    @invariant()
    def nothing_is_breached(self) -> None:
        assert self.world.of(Violated) == []

    @invariant()
    def what_the_client_is_past_is_counted(self) -> None:
        assert sum(self.world.undelivered.values()) == len(self.passed)

    def _never_written(self) -> list[str]:
        return [event for _, event in self.known if event not in self.written]

    def teardown(self) -> None:
        if self.storing is not None:
            self.emitted()
        self.world.end(self.session)
        for resuming in self.resuming.values():
            resuming.connection.wire.end()
        for name, connection in self.live.items():
            connection.wire.drop(self.session, name)
        assert sum(self.world.undelivered.values()) == len(self._never_written())
        assert self.world.watch.remembered == (0, 0)


def _after(rows: list[tuple[str, str]], name: str, event_id: str) -> list[str]:
    place = rows.index((name, event_id))
    return [event for stream, event in rows[place + 1 :] if stream == name]


TestServer = Server.TestCase
TestServer.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)

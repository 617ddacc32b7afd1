"""A model of the event log that forgets nothing, and of clients that are cut after any event."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from hypothesis.stateful import RuleBasedStateMachine

from otel_mcp_resume.rules.boundary import (
    LoggedEvent,
    ResumptionBoundaryError,
    ResumptionKind,
    ResumptionProblem,
    StreamEventLog,
    handle_reconnect,
)

__all__ = [
    "SESSIONS",
    "UNLIMITED",
    "ModelMachine",
    "Request",
    "Session",
    "Stream",
    "has_had_streams",
    "has_open_streams",
    "has_pending_requests",
    "has_room",
    "has_sessions",
]

SESSIONS = ["S1", "S2", "S3"]
UNLIMITED = dict.fromkeys(
    [
        "max_sessions",
        "max_streams",
        "max_streams_per_session",
        "max_events",
        "max_events_per_session",
        "max_pending_per_session",
    ],
    10**6,
)


@dataclass(eq=False)
class Request:
    payload: str
    carrier: tuple[Stream, int] | None = None
    received_from: tuple[Stream, int] | None = None


@dataclass(eq=False)
class Stream:
    session: Session
    name: str
    tokens: list[str]
    """The token of a client that has received so many events."""
    events: list[tuple[str, Request | None]] = field(default_factory=list)
    moments: list[int] = field(default_factory=list)
    """When each event was appended, in the session's and the log's count."""
    used: int = 0
    finished: bool = False
    closed: bool = False
    read: int = 0
    """How far its client is."""
    received: set[int] = field(default_factory=set)

    def is_void(self, number: int) -> bool:
        request = self.events[number - 1][1]
        return request is not None and (
            request not in self.session.pending.values() or request.carrier != (self, number)
        )

    def owed(self, number: int) -> list[tuple[str, str]]:
        return [
            (self.tokens[n], self.events[n - 1][0])
            for n in range(number + 1, len(self.events) + 1)
            if not self.is_void(n)
        ]


@dataclass(eq=False)
class Session:
    name: str
    used: int
    current: dict[str, Stream] = field(default_factory=dict)
    streams: list[Stream] = field(default_factory=list)
    pending: dict[str, Request] = field(default_factory=dict)
    events: list[int] = field(default_factory=list)


class ModelMachine(RuleBasedStateMachine):
    """What was logged, and what must be true of an answer. The rules are elsewhere."""

    limits: ClassVar[dict[str, int]] = UNLIMITED

    def __init__(self) -> None:
        super().__init__()
        self.log = StreamEventLog[str](**self.limits)
        self.live: dict[str, Session] = {}
        self.ended: list[Session] = []
        self.events: list[int] = []
        self.now = 0
        self.count = 0

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind} {self.count}"

    def touch(self, session: Session, stream: Stream | None = None) -> None:
        self.now += 1
        session.used = self.now
        if stream is not None:
            stream.used = self.now

    def session(self, index: int) -> Session | None:
        """A live session, unless the log has evicted it, which must have been its turn."""
        session = list(self.live.values())[index % len(self.live)]
        try:
            self.log.check_session(session.name)
        except ResumptionBoundaryError as error:
            self.assert_problem(error, ResumptionProblem.UNKNOWN_SESSION)
            newer = [other for other in [*self.live.values(), *self.ended] if other.used > session.used]
            assert len(newer) >= self.limits["max_sessions"]
            self.ended.append(self.live.pop(session.name))
            return None
        self.touch(session)
        return session

    def log_event(self, session: Session, name: str, token: str, payload: str, request: Request | None) -> Stream:
        """The log appended this; under a new prefix it is a new stream of that name."""
        prefix, number = token.rsplit(":", 1)
        stream = session.current.get(name)
        if stream is None or stream.tokens[0].rsplit(":", 1)[0] != prefix:
            if stream is not None:
                self.assert_stream_had_to_go(stream)
            stream = self.open(session, name, f"{prefix}:0")
        assert int(number) == len(stream.tokens)
        assert all(token not in other.tokens for other in session.streams)
        stream.tokens.append(token)
        stream.events.append((payload, request))
        self.now += 1
        stream.moments.append(self.now)
        session.events.append(self.now)
        self.events.append(self.now)
        stream.used = session.used = self.now
        if request is not None:
            request.carrier = (stream, int(number))
        return stream

    def open(self, session: Session, name: str, token: str) -> Stream:
        stream = Stream(session, name, [token])
        session.current[name] = stream
        session.streams.append(stream)
        self.touch(session, stream)
        return stream

    @staticmethod
    def assert_problem(error: ResumptionBoundaryError, problem: ResumptionProblem) -> None:
        assert error.problem is problem

    def assert_stream_had_to_go(self, stream: Stream) -> None:
        session = stream.session
        everywhere = [other for one in [*self.live.values(), *self.ended] for other in one.streams]
        assert (
            sum(other.used > stream.used for other in session.streams) >= self.limits["max_streams_per_session"]
            or sum(other.used > stream.used for other in everywhere) >= self.limits["max_streams"]
        )

    def assert_refusal_had_to_be(self, stream: Stream, number: int) -> None:
        if stream.closed:
            return
        kept_in_session = stream.session.events[-self.limits["max_events_per_session"] :]
        kept = self.events[-self.limits["max_events"] :]
        if any(moment not in kept_in_session or moment not in kept for moment in stream.moments[number:]):
            return
        self.assert_stream_had_to_go(stream)

    def resume(self, session: Session, stream: Stream, number: int) -> tuple[LoggedEvent[str], ...]:
        try:
            resumption = handle_reconnect(self.log, session.name, stream.tokens[number])
        except ResumptionBoundaryError as error:
            self.assert_problem(error, ResumptionProblem.EVICTED)
            self.assert_refusal_had_to_be(stream, number)
            return ()
        assert not stream.closed
        self.touch(session, stream)
        assert resumption.kind is ResumptionKind.STREAM
        assert [(event.event_id, event.payload) for event in resumption.events] == stream.owed(number)
        assert (resumption.stream, resumption.finished) == (stream.name, stream.finished)
        return resumption.events

    def received(self, stream: Stream, events: tuple[LoggedEvent[str], ...]) -> None:
        """Its client received these, then it was cut."""
        for event in events:
            number = stream.tokens.index(event.event_id)
            assert number > stream.read, "replayed twice"
            assert number not in stream.received, "replayed twice"
            request = stream.events[number - 1][1]
            if request is not None:
                assert request.received_from != request.carrier, "a delivered request was repeated"
                request.received_from = (stream, number)
            stream.received.add(number)
            skipped = [n for n in range(stream.read + 1, number) if not stream.is_void(n)]
            assert not skipped
            stream.read = number


# Preconditions. No lambdas: releases of hypothesis exist that parse the source of one at every step.


def has_room(model: ModelMachine) -> bool:
    return len(model.live) < len(SESSIONS)


def has_sessions(model: ModelMachine) -> bool:
    return bool(model.live)


def has_open_streams(model: ModelMachine) -> bool:
    return any(session.current for session in model.live.values())


def has_had_streams(model: ModelMachine) -> bool:
    return any(session.streams for session in model.live.values())


def has_pending_requests(model: ModelMachine) -> bool:
    return any(session.pending for session in model.live.values())

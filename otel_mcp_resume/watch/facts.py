"""What `watch` returns and `report` turns into metrics, spans and records: plain frozen values.

Identifiers travel in facts so that spans and log records can show them; metrics never do.
Durations are seconds on the monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from otel_mcp_resume.rules.terms import (
    Disconnect,
    DuplicateKind,
    Generation,
    Outcome,
    Reason,
    Side,
    Stream,
    UndeliveredCause,
    ViolationRule,
)

__all__ = [
    "AttemptSettled",
    "Context",
    "DuplicateEvent",
    "EventsUndelivered",
    "Fact",
    "LedgerEvicted",
    "PendingRequests",
    "SessionClosed",
    "SessionOpened",
    "StreamClosed",
    "StreamOpened",
    "StreamReopened",
    "Violated",
]


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of the exchange that a fact is about. For spans and log records only."""

    session_id: str | None = None
    protocol_version: str | None = None
    method: str | None = None
    request_id: str | None = None
    status_code: int | None = None
    server_address: str | None = None
    server_port: int | None = None


NO_CONTEXT = Context()


@dataclass(frozen=True, slots=True)
class AttemptSettled:
    """One attempt got its verdict."""

    side: Side
    generation: Generation
    previous_generation: Generation
    stream: Stream
    outcome: Outcome
    reason: Reason
    elapsed: float | None
    """Seconds from the re-opening to the verdict; None where nothing was opened (`abandoned`)."""
    downtime: float | None = None
    """Seconds from the end of the stream's last connection to this re-opening, if both were seen."""
    token: str | None = None
    previous_session_id: str | None = None
    """The session that the token is bound to."""
    first_event_id: str | None = None
    last_event_id: str | None = None
    events: int = 0
    """SSE messages on this connection up to the verdict."""
    missed_events: int | None = None
    """Server only: how many owed messages were not written."""
    context: Context = NO_CONTEXT


@dataclass(frozen=True, slots=True)
class Violated:
    """A breach of the boundary, whether it belongs to an attempt or not."""

    side: Side
    generation: Generation
    rule: ViolationRule
    stream: Stream | None = None
    token: str | None = None
    context: Context = NO_CONTEXT


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """An SSE connection is open."""

    side: Side
    generation: Generation
    stream: Stream


@dataclass(frozen=True, slots=True)
class StreamReopened:
    """A stream that existed before is open again."""

    side: Side
    generation: Generation
    stream: Stream
    downtime: float


@dataclass(frozen=True, slots=True)
class StreamClosed:
    """An SSE connection ended."""

    side: Side
    generation: Generation
    stream: Stream
    cause: Disconnect


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """A session was established."""

    side: Side
    generation: Generation


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """A session ended."""

    side: Side
    generation: Generation


@dataclass(frozen=True, slots=True)
class DuplicateEvent:
    """An event id appeared again on its stream."""

    side: Side
    generation: Generation
    stream: Stream
    kind: DuplicateKind


@dataclass(frozen=True, slots=True)
class EventsUndelivered:
    """Messages of a server can no longer reach their client."""

    generation: Generation
    stream: Stream
    cause: UndeliveredCause
    count: int


@dataclass(frozen=True, slots=True)
class PendingRequests:
    """The number of unanswered requests of a server to its clients changed by `change`."""

    generation: Generation
    change: int


@dataclass(frozen=True, slots=True)
class LedgerEvicted:
    """Remembered ids or streams were dropped to stay within the limit."""

    side: Side
    count: int


Fact = Union[
    AttemptSettled,
    DuplicateEvent,
    EventsUndelivered,
    LedgerEvicted,
    PendingRequests,
    SessionClosed,
    SessionOpened,
    StreamClosed,
    StreamOpened,
    StreamReopened,
    Violated,
]

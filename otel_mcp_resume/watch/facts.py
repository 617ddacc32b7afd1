"""What `watch` returns and `report` turns into metrics, spans and records: plain frozen values.

Identifiers travel in facts so that spans and log records can show them; metrics never do.
Durations are seconds on the monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union, get_args

from otel_mcp_resume.records import record
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
    "FACTS",
    "SHOWN_EVENTS",
    "AttemptBegun",
    "AttemptSettled",
    "Context",
    "DuplicateEvent",
    "EventInWindow",
    "EventsUndelivered",
    "Fact",
    "LedgerEvicted",
    "Node",
    "PendingRequests",
    "SessionClosed",
    "SessionOpened",
    "StreamClosed",
    "StreamOpened",
    "StreamReopened",
    "Violated",
]


SHOWN_EVENTS = 32
"""Events of the window of one attempt that are told of: more than that nobody reads, and a replay may be long."""


class Node:
    """A session, a connection or an attempt, as far as `report` is concerned.

    `watch` hands nodes around and never looks inside: a span is kept here for as long as the thing it is of, so that
    spans can be linked without a table that would have to be bounded.
    """

    __slots__ = ("made",)

    def __init__(self) -> None:
        self.made: object = None
        """What `report` made of it."""


@record
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


@record
class AttemptBegun:
    """A stream is being opened again: the request goes out, or came in. What is never settled was no attempt."""

    side: Side
    generation: Generation
    stream: Stream
    node: Node
    cut: Node | None = None
    """The stream's last connection, if it was seen."""
    session: Node | None = None
    carrier: Mapping[str, str] | None = None
    """Server: the request's headers, in which the peer's trace context may be."""
    age: float = 0.0
    """Seconds since the request came in."""


@record
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
    node: Node | None = None


@record
class Violated:
    """A breach of the boundary, whether it belongs to an attempt or not."""

    side: Side
    generation: Generation
    rule: ViolationRule
    stream: Stream | None = None
    token: str | None = None
    context: Context = NO_CONTEXT
    node: Node | None = None
    """The connection that it was seen on, if there is one."""


@record
class StreamOpened:
    """An SSE connection is open."""

    side: Side
    generation: Generation
    stream: Stream
    node: Node | None = None
    cut: Node | None = None
    """The connection that it replaces."""
    session: Node | None = None
    attempt: Node | None = None
    """The attempt that it came of."""
    context: Context = NO_CONTEXT
    carrier: Mapping[str, str] | None = None


@record
class StreamReopened:
    """A stream that existed before is open again."""

    side: Side
    generation: Generation
    stream: Stream
    downtime: float
    attempt: Node | None = None


@record
class StreamClosed:
    """An SSE connection ended."""

    side: Side
    generation: Generation
    stream: Stream
    cause: Disconnect
    node: Node | None = None
    events: int = 0
    first_event_id: str | None = None
    last_event_id: str | None = None


@record
class SessionOpened:
    """A session was established."""

    side: Side
    generation: Generation
    node: Node | None = None
    context: Context = NO_CONTEXT
    carrier: Mapping[str, str] | None = None


@record
class SessionClosed:
    """A session ended."""

    side: Side
    generation: Generation
    node: Node | None = None


@record
class DuplicateEvent:
    """An event id appeared again on its stream."""

    side: Side
    generation: Generation
    stream: Stream
    kind: DuplicateKind


@record
class EventsUndelivered:
    """Messages of a server can no longer reach their client."""

    generation: Generation
    stream: Stream
    cause: UndeliveredCause
    count: int


@record
class PendingRequests:
    """The number of unanswered requests of a server to its clients changed by `change`."""

    generation: Generation
    change: int


@record
class LedgerEvicted:
    """Remembered ids or streams were dropped to stay within the limit."""

    side: Side
    count: int


@record
class EventInWindow:
    """An event on a connection whose attempt is not settled yet, or settles with it. For spans only."""

    attempt: Node
    event_id: str


Fact = Union[
    AttemptBegun,
    AttemptSettled,
    DuplicateEvent,
    EventInWindow,
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

FACTS: frozenset[type] = frozenset(get_args(Fact))

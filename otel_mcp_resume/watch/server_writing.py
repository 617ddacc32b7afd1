"""What it means that one event was written, where that is not plain: on a resumed stream, or past a waiting message.

The owner holds the lock of the watch around every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from otel_mcp_resume.rules.terms import DuplicateKind, Reason, Side, Stream
from otel_mcp_resume.watch.facts import DuplicateEvent, Fact
from otel_mcp_resume.watch.pending import Pending
from otel_mcp_resume.watch.subjects import Subject

if TYPE_CHECKING:
    from otel_mcp_resume.watch.ledger import StreamLedger
    from otel_mcp_resume.watch.server_attempt import ServerAttempt
    from otel_mcp_resume.watch.server_connection import ServerConnection

__all__ = ["Replayed", "settle_stray", "written_from_router", "written_from_store"]


class Replayed:
    """One event that a store hands over to a connection."""

    __slots__ = ("event_id", "seq", "stream", "was_written")

    def __init__(self, event_id: str, stream: StreamLedger | None, seq: int) -> None:
        self.event_id = event_id
        self.stream = stream
        """None if the session's ledger doesn't know the event."""
        self.seq = seq
        self.was_written = False


def written_from_store(exchange: ServerConnection, event: Replayed) -> Sequence[Fact]:
    """A replayed event left through the `send` of `exchange`."""
    event.was_written = True
    attempt = exchange.expect_replay()
    facts = list(_replayed(exchange, attempt, event))
    if not attempt.is_settled:
        is_own = event.stream is not None and event.stream is attempt.debt.stream
        facts += attempt.note_id(event.event_id, event.seq if is_own else 0)
        facts += attempt.judge()
    exchange.refresh()
    return facts


def _replayed(exchange: ServerConnection, attempt: ServerAttempt, event: Replayed) -> Sequence[Fact]:
    stream, cursor, session = event.stream, attempt.debt.cursor, exchange.session
    if exchange.request.token is None:
        return attempt.breach(Reason.REPLAY_WITHOUT_TOKEN)
    if stream is None:
        if session is not None and session.storing:
            exchange.strays[event.event_id] = None  # the store may be about to return the very id that it replayed
            return ()
        return settle_stray(exchange, event.event_id)
    facts: list[Fact] = []
    is_new = stream.parked.pop(event.event_id, None) is not None
    is_other = cursor is not None and stream is not cursor.stream
    if is_other:
        facts += attempt.breach(Reason.CROSS_STREAM_REPLAY)
    elif not is_new and cursor is not None and event.seq <= cursor.seq:
        facts.append(_redelivered(exchange, stream.kind))
    subject = stream.subjects.get(event.event_id)
    if isinstance(subject, Pending) and subject.was_written:
        asked_for = cursor is not None and not is_other and event.seq > cursor.seq
        if not asked_for:
            facts.append(subject.repeated())
    return facts if subject is None else [*facts, *subject.written(exchange)]


def settle_stray(exchange: ServerConnection, event_id: str) -> Sequence[Fact]:
    """A written event is none of this session's, unless the session's ledger has forgotten some."""
    exchange.strays.pop(event_id, None)
    attempt, session = exchange.attempt, exchange.session
    if attempt is None or session is None or not session.is_complete:
        return ()
    return attempt.breach(Reason.CROSS_SESSION_REPLAY)


def written_from_router(exchange: ServerConnection, item: str | Subject) -> Sequence[Fact]:
    """A live message left: one that a store keeps, by its id; or else what it means."""
    if isinstance(item, Subject):
        return item.written(exchange)
    stream, session, attempt = exchange.live, exchange.session, exchange.attempt
    if stream is None or session is None:
        return ()
    facts: list[Fact] = []
    seq = stream.events.get(item, 0)
    if item in exchange.doubled:
        exchange.doubled -= {item}
        facts.append(_redelivered(exchange, stream.kind))
    if attempt is not None and exchange.is_foreign:
        facts += attempt.breach(Reason.CROSS_STREAM_REPLAY)
    facts += session.skip(stream, seq)
    subject = stream.subjects.get(item)
    if subject is not None:
        facts += subject.written(exchange)
    if attempt is not None and not attempt.is_settled:
        facts += attempt.note_id(item, seq)
        facts += attempt.judge()
    exchange.refresh()
    return facts


def _redelivered(exchange: ServerConnection, kind: Stream) -> Fact:
    return DuplicateEvent(Side.SERVER, exchange.generation, kind, DuplicateKind.REDELIVERED)

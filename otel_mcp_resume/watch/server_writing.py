"""What it means that one event was written, where that is not plain: on a resumed stream, or past a waiting message.

The owner holds the lock of the watch around every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from otel_mcp_resume.rules.terms import DuplicateKind, Reason, Side, Stream
from otel_mcp_resume.watch.facts import DuplicateEvent, Fact
from otel_mcp_resume.watch.ledger import Entry
from otel_mcp_resume.watch.pending import Pending

if TYPE_CHECKING:
    from otel_mcp_resume.watch.server_attempt import ServerAttempt
    from otel_mcp_resume.watch.server_exchange import Exchange

__all__ = ["settle_stray", "written"]


def written(exchange: Exchange, entry: Entry) -> Sequence[Fact]:
    """`entry` left through the `send` of `exchange`."""
    attempt, before = exchange.attempt, entry.written
    entry.written = True
    facts: list[Fact] = []
    if attempt is not None and not attempt.is_settled:
        attempt.note_id(entry.event_id, entry.seq if entry.stream is attempt.debt.stream else 0)
    if exchange.replaying and attempt is not None:
        exchange.replaying -= 1
        facts += _replayed(exchange, attempt, entry, before=before)
    else:
        facts += _live(exchange, entry, before=before)
    if entry.subject is not None:
        facts += entry.subject.written(exchange)
    if attempt is not None and not attempt.is_settled:
        facts += attempt.wrote()
    exchange.refresh()
    return facts


def _replayed(exchange: Exchange, attempt: ServerAttempt, entry: Entry, *, before: bool) -> Sequence[Fact]:
    stream, cursor, session = entry.stream, attempt.debt.cursor, exchange.session
    if exchange.request.token is None:
        return attempt.breach(Reason.REPLAY_WITHOUT_TOKEN)
    if stream is None:
        if session is not None and session.storing:
            exchange.stray[entry] = None  # the store may be about to return the very id that it already replayed
            return ()
        return settle_stray(exchange, entry)
    facts: list[Fact] = []
    stream.parked.pop(entry, None)
    is_other = cursor is not None and stream is not cursor.stream
    if is_other:
        facts += attempt.breach(Reason.CROSS_STREAM_REPLAY)
    elif before and cursor is not None and entry.seq <= cursor.seq:
        facts.append(_redelivered(exchange, stream.kind))
    if before and isinstance(entry.subject, Pending):
        asked_for = cursor is not None and not is_other and entry.seq > cursor.seq
        if not asked_for:
            facts.append(entry.subject.repeated())
    return facts


def settle_stray(exchange: Exchange, entry: Entry) -> Sequence[Fact]:
    """A written event is none of this session's, unless the session's ledger has forgotten some."""
    exchange.stray.pop(entry, None)
    attempt, session = exchange.attempt, exchange.session
    if attempt is None or session is None or not session.is_complete:
        return ()
    return attempt.breach(Reason.CROSS_SESSION_REPLAY)


def _live(exchange: Exchange, entry: Entry, *, before: bool) -> Sequence[Fact]:
    stream, session, attempt = entry.stream, exchange.session, exchange.attempt
    if stream is None or session is None:
        return ()
    facts: list[Fact] = []
    if before and attempt is not None and entry in attempt.debt.replayed:
        facts.append(_redelivered(exchange, stream.kind))
    if exchange.is_foreign and attempt is not None:
        facts += attempt.breach(Reason.CROSS_STREAM_REPLAY)
    facts += session.skip(stream, entry.seq)
    return facts


def _redelivered(exchange: Exchange, kind: Stream) -> Fact:
    return DuplicateEvent(Side.SERVER, exchange.generation, kind, DuplicateKind.REDELIVERED)

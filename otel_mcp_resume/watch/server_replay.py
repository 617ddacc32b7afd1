"""One replay of an event store: what it hands over, and when the window between replay and live closes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from otel_mcp_resume.rules.terms import Reason
from otel_mcp_resume.watch.server_debt import Cursor
from otel_mcp_resume.watch.server_writing import Replayed, settle_stray

if TYPE_CHECKING:
    from otel_mcp_resume.watch.facts import Fact
    from otel_mcp_resume.watch.ledger import StreamLedger
    from otel_mcp_resume.watch.server_attempt import ServerAttempt
    from otel_mcp_resume.watch.server_exchange import Exchange
    from otel_mcp_resume.watch.server_session import Session
    from otel_mcp_resume.watch.server_state import ServerState

__all__ = ["Replay", "recognise_stray", "settle_strays"]


class Replay:
    """One call of the store, on behalf of one exchange. Takes the lock of the watch."""

    __slots__ = ("_exchange", "_others", "_session", "_state")

    def __init__(self, state: ServerState, session: Session, exchange: Exchange) -> None:
        self._state = state
        self._session = session
        self._exchange = exchange
        self._others: dict[str, StreamLedger] | None = None
        """The events of all other streams. Made for the first one of them, since a scan for each would be quadratic."""
        with state.lock:
            exchange.serve(session)
            exchange.expect_replay().debt.begin(state.ledger.seq)

    def handed(self, event_id: str | None) -> None:
        """The store hands an event over, which will be written next."""
        with self._state.lock:
            session, exchange = self._session, self._exchange
            if session.is_finished or exchange.is_over:
                return
            attempt = exchange.expect_replay()
            debt, replay = attempt.debt, exchange.replaying()
            event_id = event_id or debt.next_unnamed() or ""
            found = self._find(event_id, attempt)
            if found is None:
                event = Replayed(event_id, None, 0)
                replay.append(event)
                if event_id and session.storing:
                    session.strays[event_id] = event, exchange
                return
            replay.append(Replayed(event_id, found.stream, found.seq))
            if found.stream is debt.stream:
                debt.hand_over(event_id, found.seq)

    def _find(self, event_id: str, attempt: ServerAttempt) -> Cursor | None:
        session, own = self._session, attempt.debt.stream
        if own is not None and event_id in own.events:
            return Cursor(own, own.events[event_id])
        if self._others is None:
            self._others = {known: stream for stream in session.streams.values() for known in stream.events}
        other = self._others.get(event_id)
        if other is not None and event_id in other.events:
            return Cursor(other, other.events[event_id])
        if Reason.CROSS_SESSION_REPLAY in attempt.breached or not session.is_complete:
            return None  # one more changes nothing
        return session.find(event_id)

    def returned(self, name: str | None) -> Sequence[Fact]:
        """The store is done, and names the stream that it replayed. An open one stays with its older connection."""
        with self._state.lock:
            session, exchange = self._session, self._exchange
            if session.is_finished or exchange.is_over or (name and name not in session.live):
                return ()
            return session.close_window(exchange, live=False)


def recognise_stray(session: Session, event_id: str, stream_name: str, seq: int) -> Sequence[Fact]:
    """The store has now issued an id that it replayed before. Holds the lock."""
    event, exchange = session.strays.pop(event_id)
    event.stream, event.seq = session.streams[stream_name], seq
    if event.was_written:
        event.stream.parked.pop(event_id, None)
    exchange.strays.pop(event_id, None)
    attempt = exchange.attempt
    if attempt is None:  # the connection has ended in between
        return ()
    if event.stream is attempt.debt.stream:
        attempt.debt.hand_over(event_id, seq)
    if exchange.live is event.stream:
        exchange.doubled |= {event_id}
        exchange.is_plain = False
    return attempt.judge()


def settle_strays(session: Session) -> Sequence[Fact]:
    """Nothing is being stored any more: what was replayed and is still unknown is none of this session's."""
    if session.storing or not session.strays:
        return ()
    facts: list[Fact] = []
    for event_id, (_, exchange) in session.strays.items():
        if event_id in exchange.strays:
            facts += settle_stray(exchange, event_id)
            if exchange.attempt is not None:
                facts += exchange.attempt.judge()
            exchange.refresh()
    session.strays.clear()
    return facts

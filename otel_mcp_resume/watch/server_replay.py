"""One replay of an event store: what it hands over, and when the window between replay and live closes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from otel_mcp_resume.watch.server_writing import Replayed, settle_stray

if TYPE_CHECKING:
    from otel_mcp_resume.watch.facts import Fact
    from otel_mcp_resume.watch.server_exchange import Exchange
    from otel_mcp_resume.watch.server_session import Session
    from otel_mcp_resume.watch.server_state import ServerState

__all__ = ["Replay", "recognise_stray", "settle_strays"]


class Replay:
    """One call of the store, on behalf of one exchange. Takes the lock of the watch."""

    __slots__ = ("_exchange", "_session", "_state")

    def __init__(self, state: ServerState, session: Session, exchange: Exchange) -> None:
        self._state = state
        self._session = session
        self._exchange = exchange
        with state.lock:
            exchange.serve(session)
            exchange.expect_replay().debt.begin(state.ledger.seq)

    def handed(self, event_id: str | None) -> None:
        """The store hands an event over, which will be written next."""
        with self._state.lock:
            session, exchange = self._session, self._exchange
            if session.is_finished or exchange.is_over:
                return
            debt = exchange.expect_replay().debt
            event_id = event_id or debt.next_unnamed() or ""
            found = session.find(event_id, debt.stream)
            if found is None:
                exchange.replay.append(Replayed(event_id, None, 0))
                if event_id and session.storing:
                    session.strays[event_id] = exchange
                return
            exchange.replay.append(Replayed(event_id, found.stream, found.seq))
            if found.stream is debt.stream:
                debt.hand_over(event_id, found.seq)

    def returned(self, name: str | None) -> Sequence[Fact]:
        """The store is done, and names the stream that it replayed. An open one stays with its older connection."""
        with self._state.lock:
            session, exchange = self._session, self._exchange
            if session.is_finished or exchange.is_over or (name and name not in session.live):
                return ()
            return session.close_window(exchange, live=False)


def recognise_stray(session: Session, event_id: str, stream_name: str, seq: int) -> Sequence[Fact]:
    """The store has now issued an id that it replayed before. Holds the lock."""
    exchange = session.strays.pop(event_id)
    attempt, stream = exchange.attempt, session.streams.get(stream_name)
    if attempt is None or stream is None or exchange.is_over:
        return ()
    for event in exchange.replay:  # it may be on its way still
        if event.event_id == event_id:
            event.stream, event.seq = stream, seq
    if event_id in exchange.strays:
        del exchange.strays[event_id]
        stream.parked.pop(event_id, None)
    if stream is attempt.debt.stream:
        attempt.debt.hand_over(event_id, seq)
    if exchange.live is stream:
        exchange.doubled.add(event_id)
        exchange.is_plain = False
    return attempt.judge()


def settle_strays(session: Session) -> Sequence[Fact]:
    """Nothing is being stored any more: what was replayed and is still unknown is none of this session's."""
    if session.storing or not session.strays:
        return ()
    facts: list[Fact] = []
    for event_id, exchange in session.strays.items():
        if event_id in exchange.strays:
            facts += settle_stray(exchange, event_id)
            if exchange.attempt is not None:
                facts += exchange.attempt.judge()
            exchange.refresh()
    session.strays.clear()
    return facts

"""One replay of an event store: what it hands over, and when the window between replay and live closes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from otel_mcp_resume.watch.ledger import Entry
from otel_mcp_resume.watch.server_writing import settle_stray

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
            exchange.expect_replay().begin(state.ledger.seq)

    def handed(self, event_id: str | None) -> None:
        """The store hands an event over, which will be written next."""
        with self._state.lock:
            session, exchange = self._session, self._exchange
            if session.is_finished or exchange.is_over:
                return
            debt = exchange.expect_replay()
            entry = session.ids.get(event_id) if event_id else debt.next_unnamed()
            if entry is None:
                entry = Entry(None, 0, event_id, None)
                if event_id and session.storing:
                    session.strays[event_id] = entry, exchange
            debt.hand_over(entry)
            exchange.queue.append(entry)
            exchange.replaying += 1

    def returned(self, name: str | None) -> Sequence[Fact]:
        """The store is done, and names the stream that it replayed. An open one stays with its older connection."""
        with self._state.lock:
            session, exchange = self._session, self._exchange
            if session.is_finished or exchange.is_over or (name and name not in session.live):
                return ()
            return session.close_window(exchange, live=False)


def recognise_stray(entry: Entry, exchange: Exchange) -> Sequence[Fact]:
    """The store has now issued the id that it replayed before. Holds the lock."""
    exchange.stray.pop(entry, None)
    attempt = exchange.attempt
    if attempt is None:
        return ()
    attempt.debt.replayed[entry] = None  # should it come live as well, that is the second time
    return attempt.wrote()


def settle_strays(session: Session) -> Sequence[Fact]:
    """Nothing is being stored any more: what was replayed and is still unknown is none of this session's."""
    if session.storing or not session.strays:
        return ()
    facts: list[Fact] = []
    for entry, exchange in session.strays.values():
        if entry in exchange.stray:
            facts += settle_stray(exchange, entry)
            if exchange.attempt is not None:
                facts += exchange.attempt.wrote()
            exchange.refresh()
    session.strays.clear()
    return facts

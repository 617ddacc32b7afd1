"""The requests of a server to its clients (sampling, elicitation, roots, ping) that are not answered yet.

Not thread-safe, but for `oldest`: the watch holds its lock around every other call.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from otel_mcp_resume.rules.terms import Generation, Side, Stream, ViolationRule
from otel_mcp_resume.watch.facts import Context, Fact, LedgerEvicted, PendingRequests, Violated
from otel_mcp_resume.watch.subjects import Subject

if TYPE_CHECKING:
    from otel_mcp_resume.watch.ledger import StreamLedger
    from otel_mcp_resume.watch.server_account import SessionAccount
    from otel_mcp_resume.watch.server_connection import ServerConnection
    from otel_mcp_resume.watch.server_state import ServerState

__all__ = ["Pending", "PendingBook", "Redelivery"]


class Pending(Subject):
    """One request of the server, from its emission to its answer. It belongs to the session, not to a stream."""

    __slots__ = ("asked_at", "carrier", "is_lost", "kind", "place", "request_id", "session", "was_written")

    def __init__(self, session: SessionAccount, request_id: str, kind: Stream, asked_at: float) -> None:
        self.session = session
        self.request_id = request_id
        self.kind = kind
        """The stream that it was emitted for."""
        self.asked_at = asked_at
        self.place: tuple[StreamLedger, int] | None = None
        """Where it is in the ledger, if a store keeps it."""
        self.was_written = False
        self.carrier: ServerConnection | None = None
        """The connection that it was written on, or that acknowledged it with its token."""
        self.is_lost = False

    @property
    def is_delivered(self) -> bool:
        """Whether a connection that is still open has carried it."""
        return self.carrier is not None and self.carrier.is_open

    def written(self, exchange: ServerConnection) -> Sequence[Fact]:
        """It is on the wire now, whatever became of an earlier connection."""
        self.carrier = exchange
        self.was_written = True
        return ()

    def lost(self) -> Sequence[Fact]:
        """It was not delivered and will not be. Counts once, and only if somebody still waits for the answer."""
        if self.is_lost or self.session.pending.get(self.request_id) is not self:
            return ()
        self.is_lost = True
        return (self._violated(ViolationRule.PENDING_REQUEST_LOST),)

    def repeated(self) -> Fact:
        """It was written before, and comes again on a stream whose token did not ask for it."""
        return self._violated(ViolationRule.PENDING_REQUEST_REPEATED)

    def _violated(self, rule: ViolationRule) -> Violated:
        session = self.session
        context = Context(session_id=session.session_id or None, request_id=self.request_id)
        return Violated(Side.SERVER, session.generation, rule, self.kind, context=context, node=session.node)


class Redelivery:
    """What a session resumption owes: the unanswered requests, delivered again within the proof timeout."""

    __slots__ = ("_session", "_state", "_waiting")

    def __init__(self, state: ServerState, session: SessionAccount, waiting: list[Pending]) -> None:
        self._state = state
        self._session = session
        self._waiting = waiting

    def expire(self) -> None:
        """The time is up. Called from the deadline thread."""
        facts: list[Fact] = []
        with self._state.lock:
            if self in self._session.awaited:  # not if the session ended in this very moment
                self._session.awaited.remove(self)
            open_ones = self._session.pending
            for pending in self._waiting:
                if open_ones.get(pending.request_id) is pending and not pending.is_delivered:
                    facts += pending.lost()
        self._state.emit(facts)


class PendingBook:
    """All unanswered requests of the process, oldest first."""

    def __init__(self, limit: int) -> None:
        """Of more than `limit` the oldest are forgotten: an application may ask and never wait for an answer."""
        self._limit = max(1, limit)
        self._open: dict[Generation, OrderedDict[Pending, None]] = {
            Generation.SSE: OrderedDict(),
            Generation.STREAMABLE_HTTP: OrderedDict(),
        }

    def ask(self, pending: Pending) -> Sequence[Fact]:
        """A request was emitted."""
        session = pending.session
        replaced = session.pending.get(pending.request_id)
        facts: list[Fact] = [] if replaced is None else [self._close(replaced)]
        session.pending[pending.request_id] = pending
        book = self._open[session.generation]
        book[pending] = None
        facts.append(PendingRequests(session.generation, 1))
        if len(book) > self._limit:
            oldest = next(iter(book))
            del oldest.session.pending[oldest.request_id]
            facts += [self._close(oldest), LedgerEvicted(Side.SERVER, 1)]
        return facts

    def close(self, session: SessionAccount, request_id: str) -> Sequence[Fact]:
        """A request was answered, or its server does not wait for it any more."""
        pending = session.pending.pop(request_id, None)
        return () if pending is None else (self._close(pending),)

    def end(self, session: SessionAccount) -> Sequence[Fact]:
        """The session is over: nobody can answer what is still open."""
        facts: list[Fact] = []
        for pending in list(session.pending.values()):
            facts += [*pending.lost(), self._close(pending)]
        session.pending.clear()
        return facts

    def _close(self, pending: Pending) -> PendingRequests:
        self._open[pending.session.generation].pop(pending, None)
        pending.carrier = pending.place = None
        return PendingRequests(pending.session.generation, -1)

    def oldest(self, now: float) -> Mapping[Generation, float]:
        """The age in seconds of the oldest open request, for the generations that have one."""
        ages: dict[Generation, float] = {}
        for generation, book in self._open.items():
            first = next(iter(book), None)
            if first is not None:
                ages[generation] = max(0.0, now - first.asked_at)
        return ages

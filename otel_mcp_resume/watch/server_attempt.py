"""One attempt as the server's ledger judges it: was all that the stream owed written, in order, and nothing else?

The owner holds the lock of the watch around every call but `expire`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from otel_mcp_resume.rules.terms import Generation, Outcome, Reason, Side, Stream, ViolationRule
from otel_mcp_resume.rules.verdict import judge_session, judge_status
from otel_mcp_resume.watch.facts import SHOWN_EVENTS, AttemptSettled, EventInWindow, Fact, Node, Violated
from otel_mcp_resume.watch.server_debt import Cursor, Debt
from otel_mcp_resume.watch.server_story import context_of

if TYPE_CHECKING:
    from otel_mcp_resume.watch.server_connection import ServerConnection
    from otel_mcp_resume.watch.server_state import ServerState

__all__ = ["ServerAttempt"]

_BREACHES = {rule.value: rule for rule in ViolationRule}


class ServerAttempt:
    """The re-opening of a stream, from its request to its verdict."""

    __slots__ = (
        "_accepted",
        "_closed",
        "_exchange",
        "_first_id",
        "_is_known",
        "_last_id",
        "_shown",
        "_state",
        "_waiting",
        "breached",
        "debt",
        "downtime",
        "is_begun",
        "is_settled",
        "last_seq",
        "node",
    )

    def __init__(self, exchange: ServerConnection, state: ServerState, cursor: Cursor | None) -> None:
        self._exchange = exchange
        self._state = state
        self.node = Node()
        self.debt = Debt(cursor)
        self.downtime: float | None = None
        self.is_begun = False
        """Whether its beginning was told."""
        self.is_settled = False
        """Also of an exchange that is no attempt, but on which an event store replays."""
        self.last_seq = 0
        """The place of the latest event that was written while the attempt was open."""
        self._first_id: str | None = None
        self._last_id: str | None = None
        self._shown = 0
        self._accepted = False
        self._closed = False
        """Whether what comes from now on is live, or nothing comes at all."""
        self._is_known = True
        self._waiting = 0
        self.breached: set[Reason] = set()

    # -- the response ----------------------------------------------------------------------------

    def answered(self, status: int, *, event_stream: bool, session_id: str | None) -> Sequence[Fact]:
        """The response head. What it refuses or breaks is settled at once."""
        facts = self._refused(status, event_stream=event_stream)
        if not facts:
            self._accepted = True
            reason = self._unlawful(session_id)
            if reason is not None:
                return self._settle(Outcome.GAP, reason)
            reason = self._unknowable()
            if reason is not None:
                return self._settle(Outcome.UNPROVEN, reason)
            facts = self.judge()
        if not self.is_settled:
            self._state.deadlines.add(self)
        return facts

    def not_resumable(self, status: int) -> Sequence[Fact]:
        """A token was shown to a server of the generation that resumes nothing."""
        return self._refused(status, event_stream=True) or self._settle(Outcome.UNPROVEN, Reason.NOT_RESUMABLE)

    def _refused(self, status: int, *, event_stream: bool) -> Sequence[Fact]:
        verdict = judge_status(status, event_stream=event_stream)
        if verdict is None:
            return ()
        reason = Reason.SERVER_ERROR if verdict.outcome is Outcome.FAILED else verdict.reason
        return self._settle(verdict.outcome, reason)

    def _unlawful(self, session_id: str | None) -> Reason | None:
        """Why a server must not accept this, whatever it sends."""
        request = self._exchange.request
        if judge_session(request.session_id, session_id) is not None:
            return Reason.SESSION_CHANGED
        if self._exchange.generation is Generation.SSE:  # every connection begins a session of its own
            return Reason.SESSION_CHANGED
        if request.token is not None and request.session_id is None:
            return Reason.ORPHAN_TOKEN_ACCEPTED
        return None

    def _unknowable(self) -> Reason | None:
        """Why the ledger can't judge this."""
        session = self._exchange.session
        if self._exchange.request.token is None:
            return None
        if session is not None and not session.is_stored:
            return Reason.NO_EVENT_STORE
        if session is None or (self.debt.cursor is None and not session.is_complete):
            return Reason.LEDGER_EVICTED
        return None

    # -- the window between replay and live ------------------------------------------------------

    def close(self, *, live: bool) -> Sequence[Fact]:
        """What comes from now on is live; or, if not `live`, the replay was all there is."""
        if self._closed:
            return ()
        self._closed = True
        self.debt.close(live=live)
        self._note_waiting()
        return self.judge()

    def note_id(self, event_id: str | None, seq: int = 0) -> Sequence[Fact]:
        """An id was written while the attempt was open."""
        self.last_seq = max(self.last_seq, seq)
        if not event_id:
            return ()
        self._first_id = self._first_id or event_id
        self._last_id = event_id
        self._shown += 1
        return (EventInWindow(self.node, event_id),) if self._shown <= SHOWN_EVENTS else ()

    def judge(self) -> Sequence[Fact]:
        """The verdict, if it is certain."""
        exchange, debt = self._exchange, self.debt
        if self.is_settled or not self._accepted or not self._closed:
            return ()
        if exchange.request.token is None:
            return self._judge_tokenless()
        if debt.missing + debt.disorder:
            return self._settle(Outcome.GAP, Reason.UNDELIVERED, debt.missing + debt.disorder)
        if exchange.replay or exchange.strays:
            return ()
        return self._unknown() if debt.cursor is None else self._proven()

    def _note_waiting(self) -> None:
        """What a stream owes to a connection without a token, as long as its account still shows it."""
        stream = self._exchange.stream
        session = self._exchange.session
        self._is_known = not (stream is None or stream.incomplete or session is None or session.is_blind)
        self._waiting = 0 if stream is None else len(stream.parked) + stream.lost

    def _judge_tokenless(self) -> Sequence[Fact]:
        if not self._is_known:
            return self._settle(Outcome.UNPROVEN, Reason.LEDGER_EVICTED)
        if self._waiting:
            return self._settle(Outcome.GAP, Reason.UNDELIVERED, self._waiting)
        return self._settle(Outcome.PROVEN, Reason.NOTHING_OWED)

    def _unknown(self) -> Sequence[Fact]:
        return self._settle(Outcome.GAP, Reason.UNKNOWN_TOKEN_ACCEPTED)

    def _proven(self) -> Sequence[Fact]:
        return self._settle(Outcome.PROVEN, Reason.REPLAY_COMPLETE if self.debt.owed else Reason.NOTHING_OWED)

    # -- the end ---------------------------------------------------------------------------------

    def breach(self, reason: Reason) -> Sequence[Fact]:
        """Something was written that must not be. It settles an open attempt, and counts once in any case."""
        if reason in self.breached:
            return ()
        self.breached.add(reason)
        if self._accepted and not self.is_settled:
            return self._settle(Outcome.GAP, reason)
        return (self._violated(_BREACHES[reason.value]),)

    def ended(self) -> Sequence[Fact]:
        """The request is over, one way or the other."""
        if self.is_settled:
            return ()
        return self._conclude() if self._accepted else self._settle(Outcome.FAILED, Reason.SERVER_ERROR)

    def expire(self) -> None:
        """The proof timeout passed: what is not written by now is missing. Called from the deadline thread."""
        with self._state.lock:
            facts = () if self.is_settled else self._conclude()
        self._state.emit(facts)

    def _conclude(self) -> Sequence[Fact]:
        if self._exchange.request.token is None:
            if not self._closed:
                self._note_waiting()
            return self._judge_tokenless()
        if self.debt.cursor is None:
            return self._unknown()
        waiting = {event.event_id for event in self._exchange.replay or ()}
        missed = self.debt.unwritten(waiting, closed=self._closed) + self.debt.disorder
        return self._settle(Outcome.GAP, Reason.UNDELIVERED, missed) if missed else self._proven()

    # -- facts -----------------------------------------------------------------------------------

    def _settle(self, outcome: Outcome, reason: Reason, missed: int | None = None) -> Sequence[Fact]:
        exchange = self._exchange
        self.is_settled = True
        self._state.deadlines.forget(self)
        facts: list[Fact] = [
            AttemptSettled(
                side=Side.SERVER,
                generation=exchange.generation,
                previous_generation=exchange.generation,
                stream=self.stream,
                outcome=outcome,
                reason=reason,
                elapsed=max(0.0, self._state.clock() - exchange.started),
                downtime=self.downtime,
                token=exchange.request.token,
                previous_session_id=exchange.request.session_id,
                first_event_id=self._first_id,
                last_event_id=self._last_id,
                events=exchange.events,
                missed_events=missed,
                context=context_of(exchange, self.debt.stream),
                node=self.node,
            )
        ]
        rule = _BREACHES.get(reason.value)
        if rule is not None:
            self.breached.add(reason)
            facts.append(self._violated(rule))
        exchange.refresh()
        return facts

    @property
    def stream(self) -> Stream:
        """The kind of the stream that is resumed."""
        return Stream.SESSION if self._exchange.generation is Generation.SSE else self.debt.kind

    def _violated(self, rule: ViolationRule) -> Violated:
        exchange, context = self._exchange, context_of(self._exchange, self.debt.stream)
        token = exchange.request.token
        return Violated(Side.SERVER, exchange.generation, rule, self.stream, token, context, self.node)

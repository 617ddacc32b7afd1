"""One session of a server as its hooks see it: what is emitted, stored, replayed and routed.

A server without sessions has one of these per request, with no id. All methods take the lock of the watch and return
facts for `report`.
"""

from __future__ import annotations

from collections.abc import Sequence

from otel_mcp_resume.rules.terms import DuplicateKind, Side, UndeliveredCause, ViolationRule
from otel_mcp_resume.watch.facts import Context, DuplicateEvent, Fact, Violated
from otel_mcp_resume.watch.ledger import StreamLedger
from otel_mcp_resume.watch.pending import Pending, Redelivery
from otel_mcp_resume.watch.server_account import SessionAccount
from otel_mcp_resume.watch.server_connection import NOTE
from otel_mcp_resume.watch.server_debt import Cursor
from otel_mcp_resume.watch.server_exchange import Exchange
from otel_mcp_resume.watch.server_replay import Replay, recognise_stray, settle_strays
from otel_mcp_resume.watch.subjects import PRIMING, Subject

__all__ = ["NOTIFICATION", "REQUEST", "RESPONSE", "Session"]

NOTIFICATION, REQUEST, RESPONSE = 0, 1, 2
"""What an emitted message is. Plain numbers: one of them is looked at for every message."""


class Session(SessionAccount):
    """What the hooks of one transport talk to."""

    __slots__ = ()

    def serve(self, exchange: Exchange) -> None:
        """A request reached this session."""
        with self._state.lock:
            exchange.serve(self)

    # -- messages of the server ------------------------------------------------------------------

    def emitted(self, name: str, kind: int = NOTIFICATION, request_id: str = "") -> Sequence[Fact]:
        """Without an event store: the router has a message for the stream `name`, and sends it on or drops it now."""
        exchange = self.live.get(name)
        if exchange is not None and kind == NOTIFICATION and not self.is_json:
            queue = exchange.queue
            if queue is None:
                exchange.route(NOTE)
            else:
                queue.append(NOTE)
            return ()
        with self._state.lock:
            if self.is_finished:
                return ()
            if self.is_json and name != self.standalone:
                return self._in_json(name, kind, request_id)
            subject, facts = self._subject(name, kind, request_id)
            if exchange is not None:
                exchange.route(NOTE if subject is None else subject)
                return facts
            return [*facts, *self._nowhere(name, subject)]

    def stored(self, name: str, event_id: str, kind: int = NOTIFICATION, request_id: str = "") -> Sequence[Fact]:
        """The store has taken a message, and the router sends it on now if the stream `name` is registered."""
        self.storing -= 1
        state = self._state
        with state.lock:
            stream = self.streams.get(name)
            if stream is None or kind or self.strays or self.is_json:
                return self._stored_slowly(name, event_id, kind, request_id)
            events, ledger = stream.events, state.ledger
            if not events or not event_id or event_id in events:
                return self._stored_slowly(name, event_id, kind, request_id)
            ledger.seq = events[event_id] = stream.seq = seq = ledger.seq + 1  # `append`, but for what was looked at
            ledger.events += 1
            exchange = self.live.get(name)
            if exchange is None:
                stream.parked[event_id] = seq
            elif exchange.queue is None:
                exchange.route(event_id)
            else:
                exchange.queue.append(event_id)
            return ledger.evict() if ledger.events > ledger.max_events else ()

    def _stored_slowly(self, name: str, event_id: str, kind: int, request_id: str) -> Sequence[Fact]:
        if self.is_finished:
            return ()
        if self.is_json and name != self.standalone:
            return self._in_json(name, kind, request_id)
        stream, ledger = self.stream(name), self._state.ledger
        subject, begun = self._subject(name, kind, request_id)
        facts = [*begun, *self._collide(stream, event_id)]
        event_id = event_id or f"\0{ledger.seq}"  # an empty id is never written, so no token can name it
        seq = ledger.append(stream, event_id)
        if subject is not None:
            stream.subjects[event_id] = subject
            if isinstance(subject, Pending):
                subject.place = stream, seq
        exchange = self.live.get(name)
        if exchange is not None:
            exchange.route(event_id)
        else:
            stream.parked[event_id] = seq
        if event_id in self.strays:
            facts += recognise_stray(self, event_id, name, seq)
        return [*facts, *settle_strays(self), *ledger.evict()]

    def primed(self, name: str, event_id: str) -> Sequence[Fact]:
        """The store has issued an id for a priming event of the stream `name`."""
        self.storing -= 1
        with self._state.lock:
            if self.is_finished or not event_id:
                return ()
            stream = self.stream(name)
            self._state.ledger.append(stream, event_id)
            stream.subjects[event_id] = PRIMING
            return [*settle_strays(self), *self._state.ledger.evict()]

    def store_failed(self, name: str, kind: int, request_id: str, *, is_message: bool) -> Sequence[Fact]:
        """The store raised, or was cancelled: a message that it was given goes nowhere."""
        self.storing -= 1
        with self._state.lock:
            if self.is_finished or not is_message:
                return settle_strays(self)
            subject, facts = self._subject(name, kind, request_id)
            return [*facts, *self._nowhere(name, subject), *settle_strays(self)]

    def sending(self, name: str, kind: int, request_id: str) -> tuple[Subject, Sequence[Fact]]:
        """A message is about to be handed to the one stream of an HTTP+SSE session."""
        with self._state.lock:
            subject, facts = self._subject(name, kind, request_id)
            item = subject or Subject()  # one of its own, so that it can be taken back
            exchange = self.live.get(name)
            if exchange is not None:
                exchange.route(item)
            return item, facts

    def unsent(self, item: Subject) -> None:
        """Its sender has taken it back."""
        with self._state.lock:
            for exchange in self.live.values():
                if exchange.queue is not None and item in exchange.queue:
                    exchange.queue.remove(item)

    def withdrew(self, request_id: str) -> Sequence[Fact]:
        """The server does not wait for the answer to one of its requests any more."""
        with self._state.lock:
            return self._state.pending.close(self, request_id)

    def _subject(self, name: str, kind: int, request_id: str) -> tuple[Subject | None, Sequence[Fact]]:
        if kind == REQUEST:
            pending = Pending(self, request_id, self.kind_of(name), self._state.clock())
            return pending, self._state.pending.ask(pending)
        return (self.inbox.answer(request_id) if kind == RESPONSE else None), ()

    def _nowhere(self, name: str, subject: Subject | None) -> Sequence[Fact]:
        stream = self.stream(name) if name == self.standalone else None
        cause = UndeliveredCause.SESSION_ENDED if self.is_ended else UndeliveredCause.NO_STREAM
        return self.undelivered(self.kind_of(name), cause, (subject,), stream)

    def _in_json(self, name: str, kind: int, request_id: str) -> Sequence[Fact]:
        """A JSON answer has room for the response only. That a call's notifications are dropped is no loss."""
        if kind == NOTIFICATION:
            return ()
        subject, facts = self._subject(name, kind, request_id)
        exchange = self.live.get(name)
        if kind == RESPONSE and exchange is not None and subject is not None:
            return [*facts, *subject.written(exchange)]
        return [*facts, *self._nowhere(name, subject)]

    def _collide(self, stream: StreamLedger, event_id: str) -> Sequence[Fact]:
        """The store issues an id for the second time. The id of a priming event may be used once more."""
        if event_id not in stream.events or stream.subjects.pop(event_id, None) is PRIMING:
            return ()
        rule, context = ViolationRule.EVENT_ID_COLLISION, Context(session_id=self.session_id)
        return (
            DuplicateEvent(Side.SERVER, self.generation, stream.kind, DuplicateKind.COLLISION),
            Violated(Side.SERVER, self.generation, rule, stream.kind, event_id, context),
        )

    # -- streams ---------------------------------------------------------------------------------

    def replay(self, exchange: Exchange) -> Replay:
        """The store begins to replay for `exchange`."""
        return Replay(self._state, self, exchange)

    def registered(self, name: str, exchange: Exchange | None) -> Sequence[Fact]:
        """Messages of the stream `name` go to `exchange` from now on; None for one that nobody saw begin."""
        with self._state.lock:
            if self.is_finished:
                return ()
            if exchange is None or exchange.is_over:
                self.live[name] = Exchange.unseen(self._state, self.generation)
                return ()
            if exchange.session is None:
                exchange.serve(self)
            self.live[name] = exchange
            stream = self.stream(name) if self.is_stored or name == self.standalone else None
            facts = list(exchange.bind(self, stream, self.kind_of(name)))
            facts += self.close_window(exchange, live=not exchange.is_foreign)
            if stream is not None:
                stream.lost, stream.incomplete = 0, False
            if name == self.standalone and exchange.request.token is None:
                self._expect_redelivery()
            return facts

    def unregistered(self, name: str) -> None:
        """Messages of the stream `name` go nowhere, or wait in the store."""
        self.live.pop(name, None)

    def close_window(self, exchange: Exchange, *, live: bool) -> Sequence[Fact]:
        """What comes to a resumed connection from now on is live, or it was all. Holds the lock."""
        attempt = exchange.attempt
        if attempt is None:
            return ()
        facts: list[Fact] = []
        debt = attempt.debt
        if debt.cursor is not None:
            facts += self.skip(debt.cursor.stream, max(debt.cursor.seq, attempt.last_seq), debt.replayed)
            self._acknowledge(debt.cursor, exchange)
        return [*facts, *attempt.close(live=live)]

    def _acknowledge(self, cursor: Cursor, exchange: Exchange) -> None:
        """A token says that all requests up to it were received."""
        for pending in self.pending.values():
            if pending.place is None or not pending.was_written:
                continue
            stream, seq = pending.place
            if stream is cursor.stream and seq <= cursor.seq:
                pending.carrier = exchange

    def _expect_redelivery(self) -> None:
        """The session was resumed: what is still unanswered must be delivered again in time."""
        waiting = [pending for pending in self.pending.values() if not pending.is_delivered and not pending.is_lost]
        if waiting:
            self.awaited.append(Redelivery(self._state, self, waiting))
            self._state.deadlines.add(self.awaited[-1])

    def end(self) -> Sequence[Fact]:
        """The transport has ended, for whatever reason. What is still on its way may arrive yet."""
        with self._state.lock:
            self.is_ended = True
            return self.finish_if_quiet()

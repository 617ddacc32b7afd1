"""One SSE response of a client: every event on it passes `feed`, so this is where cost matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from otel_mcp_resume.rules.terms import Disconnect, DuplicateKind, Outcome, Side, ViolationRule
from otel_mcp_resume.rules.verdict import EventEvidence, judge_event, judge_session, judge_silence, same_request
from otel_mcp_resume.watch.facts import (
    SHOWN_EVENTS,
    DuplicateEvent,
    EventInWindow,
    Fact,
    Node,
    StreamClosed,
    Violated,
)
from otel_mcp_resume.watch.jsonrpc import response_id
from otel_mcp_resume.watch.seen import EVICTIONS_AT_ONCE
from otel_mcp_resume.watch.sse import Block, SseScanner

if TYPE_CHECKING:
    from otel_mcp_resume.rules.verdict import Verdict
    from otel_mcp_resume.watch.attempt import Attempt
    from otel_mcp_resume.watch.client_stream import ClientStream
    from otel_mcp_resume.watch.facts import Context

__all__ = ["Connection"]

SHOWN_ID = 1024
"""Characters of an id that are kept to be shown."""


class Connection:
    """An open event stream, an incarnation of its logical stream."""

    __slots__ = (
        "_answers",
        "_count",
        "_delivered",
        "_responded",
        "_scanner",
        "attempt",
        "closed",
        "context",
        "events",
        "first_id",
        "node",
        "request_id",
        "stream",
    )

    def __init__(
        self,
        stream: ClientStream,
        *,
        count: Callable[[], None],
        context: Context,
        request_id: str | None,
        attempt: Attempt | None,
    ) -> None:
        self.stream = stream
        self.context = context
        self.request_id = request_id
        self.attempt = attempt
        self.node = Node()
        self.first_id: str | None = None
        self.events = 0
        self.closed = False
        asked = stream.transport.asked
        self._answers = asked is not None or stream.request_id is not None or request_id is not None
        self._responded = stream.responded_with if asked is None else stream.transport.answered
        self._count = count
        self._delivered = False
        self._scanner = SseScanner()

    def feed(self, text: str) -> Sequence[Fact]:
        """The text that arrived, decoded."""
        facts: list[Fact] = []
        message = self._scanner.message(text)
        if message is not None:
            self._message(*message, facts)
        else:
            for block in self._scanner.feed(text):
                self._block(block, facts)
        watch = self.stream.watch
        if watch.memory.evicted >= EVICTIONS_AT_ONCE:
            facts += watch.evictions()
        return facts

    def _block(self, block: Block, facts: list[Fact]) -> None:
        event_id, data, event = block
        if event and event != "message":
            self._named_endpoint(event, data, facts)
            data = None  # the SDKs ignore other event types, but not their ids
        if data:
            self._message(event_id, data, facts)
        elif event_id is not None:
            self._id_alone(event_id, facts)
        elif self.attempt is not None and event != "endpoint":
            self.attempt.heartbeats = True

    def _message(self, event_id: str | None, data: str, facts: list[Fact]) -> None:
        """The path of every message: keep it short."""
        stream = self.stream
        self._count()
        self.events += 1
        repeated = answered = None
        if self._answers and (answered := response_id(data)) is not None:
            self._responded(answered, data)
        if event_id:
            repeated = stream.saw_id(event_id, data)
        elif event_id is not None:
            stream.forget_token()
        if repeated is not DuplicateKind.REDELIVERED:
            self._delivered = True
            stream.barren = 0
        if self.attempt is not None or repeated is not None or answered is not None:
            self._judge(event_id, data, repeated, answered, facts)
        if not self.first_id:
            self.first_id = event_id

    def _id_alone(self, event_id: str, facts: list[Fact]) -> None:
        """A priming event, or one of a type that the SDKs ignore."""
        stream = self.stream
        if not event_id:
            stream.forget_token()
        else:
            if event_id not in stream.seen:
                self._delivered = True
                stream.barren = 0
            stream.saw_id(event_id, None)
        if self.attempt is not None:
            self._judge(event_id, None, None, None, facts)
        self.first_id = self.first_id or event_id

    def _named_endpoint(self, event: str, data: str | None, facts: list[Fact]) -> None:
        if event == "endpoint" and data:
            self.stream.transport.endpoint_named(self, data, facts)

    def _judge(
        self,
        event_id: str | None,
        data: str | None,
        repeated: DuplicateKind | None,
        answered: str | None,
        facts: list[Fact],
    ) -> None:
        stream = self.stream
        collides = repeated is DuplicateKind.COLLISION
        foreign = same_request(self.request_id, answered) is False
        if repeated is not None:
            facts.append(DuplicateEvent(Side.CLIENT, stream.generation, stream.kind, repeated))
        reason = None
        with stream.watch.lock:
            attempt = self.attempt
            if attempt is not None and not attempt.settled:
                attempt.events += bool(data)
                attempt.messages = attempt.messages or bool(data)
                if event_id:
                    if attempt.shown < SHOWN_EVENTS:
                        attempt.shown += 1
                        facts.append(EventInWindow(attempt.node, event_id[:SHOWN_ID]))
                    attempt.last_id = event_id[:SHOWN_ID]
                    attempt.first_id = attempt.first_id or attempt.last_id
                evidence = EventEvidence(
                    token=attempt.binding.token,
                    first_id=event_id if event_id and not self.first_id else None,
                    has_payload=bool(data),
                    collides=collides,
                    request_id=self.request_id,
                    response_id=answered,
                    trusted=attempt.trusted,
                )
                if verdict := judge_event(evidence):
                    facts += self._settle(attempt, verdict)
                    reason = verdict.reason.value
        for breached, rule in (
            (collides, ViolationRule.EVENT_ID_COLLISION),
            (foreign, ViolationRule.FOREIGN_RESPONSE),
        ):
            if breached and reason != rule.value:  # as the reason of the attempt it has been counted
                facts.append(Violated(Side.CLIENT, stream.generation, rule, stream.kind, None, self.context, self.node))

    def session_named(self, session_id: str) -> Sequence[Fact]:
        """The session of a stream that names it in an event (`sse`) instead of the response head."""
        with self.stream.watch.lock:
            attempt = self.attempt
            if attempt is None or attempt.settled:
                return ()
            verdict = judge_session(attempt.binding.session_id, session_id)
            return self._settle(attempt, verdict) if verdict else ()

    def _settle(self, attempt: Attempt, verdict: Verdict) -> list[Fact]:
        """Holds the lock. After evidence that numbering or session began anew, old ids would only alarm again."""
        self.attempt = None
        watch = self.stream.watch
        watch.settled(attempt)
        facts = attempt.settle(verdict, watch.clock())
        if verdict.outcome is Outcome.PROVEN:
            self.stream.barren = 0
        elif verdict.outcome is Outcome.GAP:
            self.stream.forget_ids()
        return facts

    def silent(self, attempt: Attempt) -> list[Fact]:
        """Nothing settled the attempt until the connection ended or the proof timeout passed. Holds the lock."""
        if attempt.settled:
            return []
        facts = self._settle(attempt, judge_silence(attempt.silence(delivered=self._delivered)))
        if not self._delivered:
            self.stream.barren += 1
        return facts

    def ended(self, cause: Disconnect) -> Sequence[Fact]:
        """The connection is over. Harmless if that was known already."""
        watch = self.stream.watch
        with watch.lock:
            if self.closed:
                return ()
            self.closed = True
            facts: list[Fact] = []
            if self.attempt is not None:
                facts += self.silent(self.attempt)
            if self.stream.answered and cause is not Disconnect.RESET:
                cause = Disconnect.COMPLETED
            facts.append(
                StreamClosed(
                    Side.CLIENT,
                    self.stream.generation,
                    self.stream.kind,
                    cause,
                    self.node,
                    self.events,
                    self.first_id and self.first_id[:SHOWN_ID],
                    self.stream.last_id,
                )
            )
            self.stream.connection_ended(self, cause)
            if cause in (Disconnect.CLOSED, Disconnect.RESET):
                self.stream.transport.cut()
            return facts

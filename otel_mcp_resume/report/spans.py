"""Facts into spans: one for each attempt, each SSE connection and each session, and never one for a message.

No span is ever attached to a context here. A span lives in the node of what it is of; when that is over its
context stays there, so that what comes next can be linked to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, cast

from opentelemetry import context, propagate, trace
from opentelemetry.instrumentation.utils import is_instrumentation_enabled
from opentelemetry.trace import Link, Span, SpanContext, Status, StatusCode

from otel_mcp_resume.report import fields
from otel_mcp_resume.report.attributes import of_attempt, of_context
from otel_mcp_resume.rules.terms import Outcome, Side
from otel_mcp_resume.watch.facts import (
    AttemptBegun,
    AttemptSettled,
    EventInWindow,
    Fact,
    Node,
    SessionClosed,
    SessionOpened,
    StreamClosed,
    StreamOpened,
    Violated,
)

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer
    from opentelemetry.util.types import AttributeValue

    from otel_mcp_resume.report.ids import Ids
    from otel_mcp_resume.report.tracing import Tracing

__all__ = ["Spans", "context_of"]

_TRACEPARENT = "traceparent"
"""W3C Trace Context. Where the application has put its own, that one stays."""


def span_of(node: Node | None) -> Span | None:
    """The span that a node is in the middle of."""
    made = None if node is None else node.made
    return made if made is not None and isinstance(made, Span) else None  # an abstract class: asking takes its time


def context_of(node: Node | None) -> SpanContext | None:
    """The context of a node's span, ended or not."""
    span = span_of(node)
    if span is not None:
        return span.get_span_context()
    made = None if node is None else node.made
    return made if isinstance(made, SpanContext) else None


class Spans:
    """Takes any fact, and starts or ends the span that it is about."""

    def __init__(self, tracing: Tracing, ids: Ids) -> None:
        self._tracing = tracing
        self._ids = ids
        self.takes: dict[type, Callable[[Any], None]] = {
            AttemptBegun: self._attempt_begun,
            AttemptSettled: self._attempt_settled,
            EventInWindow: self._event,
            SessionClosed: self._closed,
            SessionOpened: self._session_opened,
            StreamClosed: self._stream_closed,
            StreamOpened: self._stream_opened,
            Violated: self._violated,
        }
        """What is done with each fact that a span tells of."""

    def __call__(self, fact: Fact) -> None:
        """Raises what the application's tracer raises."""
        move = self.takes.get(type(fact))
        if move is not None:
            move(fact)

    # -- beginning -------------------------------------------------------------------------------

    def _tracer(self) -> Tracer | None:
        """None if nobody takes spans now: all that follows is spared then."""
        tracer = self._tracing.tracer()
        return tracer if tracer is not None and is_instrumentation_enabled() else None

    @staticmethod
    def _start(
        tracer: Tracer,
        name: str,
        attributes: Mapping[str, AttributeValue],
        *,
        parent: Context | None,
        linked: Node | None = None,
        age: float = 0.0,
    ) -> Span:
        before = context_of(linked)
        links = [] if before is None else [Link(before)]
        since = time.time_ns() - int(age * 1e9) if age else None
        return tracer.start_span(name, context=parent, attributes=attributes, links=links, start_time=since)

    def _attempt_begun(self, fact: AttemptBegun) -> None:
        tracer = self._tracer()
        if tracer is None:
            return
        attributes = {
            fields.SIDE: str(fact.side),
            fields.GENERATION: str(fact.generation),
            fields.STREAM: str(fact.stream),
        }
        parent = _parent(fact.side, fact.session, fact.carrier)
        fact.node.made = self._start(
            tracer, fields.SPAN_RESUME, attributes, parent=parent, linked=fact.cut, age=fact.age
        )

    def _stream_opened(self, fact: StreamOpened) -> None:
        tracer = self._tracer()
        if tracer is None or fact.node is None:
            return
        attributes = {
            fields.SIDE: str(fact.side),
            fields.GENERATION: str(fact.generation),
            fields.STREAM: str(fact.stream),
            **of_context(fact.context, fact.generation, self._ids),
        }
        parent = _parent(fact.side, fact.session, fact.carrier)
        fact.node.made = span = self._start(tracer, fields.SPAN_STREAM, attributes, parent=parent, linked=fact.cut)
        attempt = span_of(fact.attempt)
        if attempt is not None:
            attempt.add_link(span.get_span_context())

    def _session_opened(self, fact: SessionOpened) -> None:
        tracer = self._tracer()
        if tracer is None or fact.node is None:
            return
        attributes = {
            fields.SIDE: str(fact.side),
            fields.GENERATION: str(fact.generation),
            **of_context(fact.context, fact.generation, self._ids),
        }
        parent = _parent(fact.side, None, fact.carrier)
        fact.node.made = self._start(tracer, fields.SPAN_SESSION, attributes, parent=parent)

    # -- across processes ------------------------------------------------------------------------

    @staticmethod
    def carry(node: Node, headers: MutableMapping[str, str]) -> object:
        """Makes the span of an attempt current while its request is sent, and lets the server know of it.

        An HTTP instrumentation makes its span a child of it. None if there is no span; else to be given to `drop`.
        """
        span = span_of(node)
        if span is None:
            return None
        carrying = trace.set_span_in_context(span)
        if _TRACEPARENT not in headers:
            propagate.inject(headers, context=carrying)
        return context.attach(carrying)

    @staticmethod
    def drop(token: object) -> None:
        """Ends what `carry` began, in the same coroutine."""
        context.detach(cast("Token[Context]", token))

    # -- between ---------------------------------------------------------------------------------

    def _event(self, fact: EventInWindow) -> None:
        span = span_of(fact.attempt)
        if span is not None:
            shown = self._ids(fact.event_id)
            span.add_event(fields.SPAN_EVENT, {} if shown is None else {fields.EVENT_ID: shown})

    def _violated(self, fact: Violated) -> None:
        span = span_of(fact.node)
        if span is not None:
            span.add_event(fields.VIOLATION_RECORD, {fields.RULE: str(fact.rule)})

    # -- ending ----------------------------------------------------------------------------------

    def _attempt_settled(self, fact: AttemptSettled) -> None:
        span = span_of(fact.node)
        if span is None or fact.node is None:
            return
        span.set_attributes(of_attempt(fact, self._ids))
        if fact.outcome in (Outcome.GAP, Outcome.ABANDONED):
            span.set_status(Status(StatusCode.ERROR, f"{fact.outcome}: {fact.reason}"))
        _end(fact.node, span)

    def _stream_closed(self, fact: StreamClosed) -> None:
        span = span_of(fact.node)
        if span is None or fact.node is None:
            return
        shown = {
            fields.FIRST_EVENT_ID: self._ids(fact.first_event_id),
            fields.LAST_EVENT_ID: self._ids(fact.last_event_id),
        }
        span.set_attribute(fields.EVENTS, fact.events)
        span.set_attributes({name: value for name, value in shown.items() if value is not None})
        _end(fact.node, span)

    @staticmethod
    def _closed(fact: SessionClosed) -> None:
        span = span_of(fact.node)
        if span is not None and fact.node is not None:
            _end(fact.node, span)


def _end(node: Node, span: Span) -> None:
    span.end()
    node.made = span.get_span_context()


def _parent(side: Side, session: Node | None, carrier: Mapping[str, str] | None) -> Context | None:
    """Where a span belongs: with its session on the client, with the request that came in on the server.

    None is the current context: there the span of an ASGI instrumentation is, if there is one.
    """
    if side is Side.CLIENT:
        span = span_of(session)
        return None if span is None else trace.set_span_in_context(span)
    if carrier is None or trace.get_current_span().get_span_context().is_valid:
        return None
    return propagate.extract(carrier)

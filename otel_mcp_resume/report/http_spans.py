"""The spans that instrumentations of the HTTP client and of the web server make of MCP exchanges: they learn what of.

No instrumentation is replaced, wrapped or asked for. Whatever span is current at the moment is looked at, and ids are
shown as everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.context import get_current
from opentelemetry.trace import Span, SpanKind

from otel_mcp_resume.report import fields
from otel_mcp_resume.rules.terms import Generation, Stream

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from otel_mcp_resume.report.ids import Ids
    from otel_mcp_resume.watch.exchange import Leaving

__all__ = ["HttpSpans"]


class HttpSpans:
    """Stateless. Raises what the application's spans raise."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    @staticmethod
    def current() -> Context:
        """The context before a request is sent."""
        return get_current()

    @staticmethod
    def has_client(leaving: Leaving) -> bool:
        """Whether the request leaves the process in a span of its own. One that was current before is another's."""
        now, before = get_current(), leaving.before
        if now is before:  # nearly always: nothing instruments the HTTP client
            return False
        span = trace.get_current_span(now)
        return span is not trace.get_current_span(before) and span.is_recording()

    def mark_client(self, leaving: Leaving) -> None:
        """To be called where the request leaves the process, if it `has_client`."""
        self._mark(trace.get_current_span(), *leaving[1:])

    def mark_server(
        self, generation: Generation, session_id: str | None, stream: Stream | None, token: str | None
    ) -> None:
        """To be called where the request is handled. The span is a server's, or it is none of the exchange's."""
        span = trace.get_current_span()
        if getattr(span, "kind", None) is SpanKind.SERVER:
            self._mark(span, generation, session_id, stream, token)

    def _mark(
        self, span: Span, generation: Generation, session_id: str | None, stream: Stream | None, token: str | None
    ) -> None:
        if not span.is_recording():
            return
        known = {
            fields.MCP_SESSION_ID: None if generation is Generation.STATELESS else self._ids(session_id),
            fields.STREAM: None if stream is None else str(stream),
            fields.TOKEN: self._ids(token),
        }
        span.set_attributes({name: value for name, value in known.items() if value is not None})

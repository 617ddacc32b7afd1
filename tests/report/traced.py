"""A process whose facts become spans: real watches, the real tracer of the SDK, ids that count up."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator

from otel_mcp_resume.report.errors import Errors
from otel_mcp_resume.report.ids import Ids
from otel_mcp_resume.report.metrics import Metrics
from otel_mcp_resume.report.reporter import Reporter
from otel_mcp_resume.report.spans import Spans
from otel_mcp_resume.report.tracing import Tracing
from otel_mcp_resume.rules.terms import Disconnect, Generation, Side, Stream
from otel_mcp_resume.settings import Settings
from otel_mcp_resume.watch.client import ClientWatch
from otel_mcp_resume.watch.client_stream import ClientStream
from otel_mcp_resume.watch.connection import Connection
from otel_mcp_resume.watch.deadlines import Deadlines
from otel_mcp_resume.watch.exchange import RequestHead, ResponseHead
from otel_mcp_resume.watch.facts import Fact

VERSION = "2025-11-25"


class Counting(IdGenerator):
    """1, 2, 3."""

    def __init__(self) -> None:
        self._ids = count(1)

    def generate_trace_id(self) -> int:
        return next(self._ids)

    def generate_span_id(self) -> int:
        return next(self._ids)


class World:
    """A client process, one endpoint, one session."""

    def __init__(self, settings: Settings | None = None, exporter: SpanExporter | None = None) -> None:
        self.now = 100.0
        self.exporter = InMemorySpanExporter()
        self.provider: TracerProvider | None = TracerProvider(
            resource=Resource({}), id_generator=Counting(), shutdown_on_exit=False
        )
        self.provider.add_span_processor(SimpleSpanProcessor(exporter or self.exporter))
        self.metrics = Metrics()
        self.errors = Errors(self.metrics.internal_error)
        self.records: list[tuple[Fact, Any]] = []
        self.settings = settings or Settings()
        self.tracing = Tracing(lambda: self.provider, self.errors)
        self.spans = Spans(self.tracing, Ids(self.settings))
        self.report = Reporter(
            self.metrics, lambda fact, trace: self.records.append((fact, trace)), self.errors, self.spans
        )
        self.deadlines = Deadlines(1000.0, self.errors)
        self.watch = ClientWatch(
            emit=self.report,
            events=lambda generation, stream: self.metrics.event_counter(Side.CLIENT, generation, stream),
            deadlines=self.deadlines,
            limits=self.settings,
            clock=lambda: self.now,
        )
        self.transport = self.watch.transport("http://server:8000/mcp")

    def initialize(self, session_id: str = "S1") -> None:
        head = RequestHead("POST", protocol_version=VERSION)
        self.report(self.transport.posted(head, ResponseHead(200, session_id), "initialize"))

    def request(self, stream: ClientStream, *, token: str | None = None, session_id: str = "S1") -> Callable[..., Any]:
        """A GET goes out. What to call with the response."""
        head = RequestHead("GET", session_id, token, VERSION)
        facts, attempt = stream.requesting(head)
        self.report(facts)

        def answer(status: int = 200, named: str | None = None) -> Connection | None:
            response = ResponseHead(status, named, event_stream=status == 200)
            facts, connection = stream.responded(head, response, attempt)
            self.report(facts)
            return connection

        return answer

    def open(self, stream: ClientStream, *, token: str | None = None, named: str | None = None) -> Connection:
        connection: Connection | None = self.request(stream, token=token)(named=named)
        assert connection is not None
        return connection

    def standalone(self) -> ClientStream:
        return self.transport.stream(Stream.STANDALONE)

    def feed(self, connection: Connection, *ids: str) -> None:
        for event_id in ids:
            self.report(connection.feed(f'id: {event_id}\ndata: {{"jsonrpc":"2.0","method":"x","n":"{event_id}"}}\n\n'))

    def end(self, connection: Connection, cause: Disconnect = Disconnect.RESET) -> None:
        self.report(connection.ended(cause))

    def close(self) -> None:
        self.report(self.transport.closed())

    @property
    def seen(self) -> list[dict[str, Any]]:
        return [shown(span) for span in self.exporter.get_finished_spans()]

    def value(self, name: str, **labels: str) -> float:
        return sum(
            sample.value
            for family in self.metrics.collect()
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


def shown(span: ReadableSpan) -> dict[str, Any]:
    """All of a span but its times."""
    scope = span.instrumentation_scope
    return {
        "name": span.name,
        "scope": scope and scope.name,
        "span": span.context and span.context.span_id,
        "trace": span.context and span.context.trace_id,
        "parent": span.parent and span.parent.span_id,
        "kind": span.kind.name,
        "status": f"{span.status.status_code.name} {span.status.description or ''}".strip(),
        "links": [link.context.span_id for link in span.links],
        "events": [(event.name, dict(event.attributes or {})) for event in span.events],
        "attributes": dict(span.attributes or {}),
    }


HERE = {
    "mcp.resume.side": "client",
    "mcp.resume.generation": str(Generation.STREAMABLE_HTTP),
    "server.address": "server",
    "server.port": 8000,
    "network.transport": "tcp",
}
"""What every span of the client has."""

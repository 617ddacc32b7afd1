"""A receiver of the official OTLP protocol over HTTP, on loopback: what it was sent, in plain values."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

LIMIT = 20.0
"""Seconds until something that must come is missing. Far more than it takes."""


@dataclass(frozen=True)
class Sent:
    """One span as it was sent."""

    service: str
    resource: dict[str, Any]
    scope: str
    name: str
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    start: int
    end: int
    attributes: dict[str, Any]
    links: tuple[tuple[str, str], ...]
    """Trace and span."""
    events: tuple[tuple[str, dict[str, Any]], ...]
    status: str
    message: str

    @property
    def where(self) -> tuple[str, str]:
        return self.trace_id, self.span_id


@dataclass(frozen=True)
class Point:
    """One number of a metric as it was sent."""

    service: str
    name: str
    unit: str
    kind: str
    temporality: int
    attributes: dict[str, Any]
    value: float
    count: int = 0
    buckets: tuple[int, ...] = ()
    bounds: tuple[float, ...] = ()
    traces: tuple[str, ...] = ()
    """Of the exemplars."""


@dataclass
class Received:
    """What has come so far."""

    url: str
    spans: list[Sent] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    delay: float = 0.0
    """Seconds until a request is answered."""
    status: int = 200
    changed: threading.Condition = field(default_factory=threading.Condition)

    def until(self, there: Callable[[Received], Any], limit: float = LIMIT) -> Any:
        """What `there` gives, as soon as that is true."""
        deadline = time.monotonic() + limit
        with self.changed:
            while not (found := there(self)):
                if not self.changed.wait(deadline - time.monotonic()):
                    raise AssertionError(f"not received: {[(each.service, each.name) for each in self.spans]}")
            return found

    def named(self, name: str, **attributes: Any) -> list[Sent]:
        """The spans of that name, and with those attributes; `_` stands for a dot."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        return [each for each in self.spans if each.name == name and wanted.items() <= each.attributes.items()]


def _value(value: Any) -> Any:
    which = value.WhichOneof("value")
    if which == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, which) if which else None


def _attributes(pairs: Sequence[Any]) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _spans(body: bytes) -> Iterator[Sent]:
    for resource_spans in ExportTraceServiceRequest.FromString(body).resource_spans:
        resource = _attributes(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                yield Sent(
                    service=str(resource.get("service.name")),
                    resource=resource,
                    scope=scope_spans.scope.name,
                    name=span.name,
                    kind=span.kind,
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                    attributes=_attributes(span.attributes),
                    links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
                    events=tuple((event.name, _attributes(event.attributes)) for event in span.events),
                    status={0: "UNSET", 1: "OK", 2: "ERROR"}[span.status.code],
                    message=span.status.message,
                )


def _points(body: bytes) -> Iterator[Point]:
    for resource_metrics in ExportMetricsServiceRequest.FromString(body).resource_metrics:
        service = str(_attributes(resource_metrics.resource.attributes).get("service.name"))
        for metric in (metric for scope in resource_metrics.scope_metrics for metric in scope.metrics):
            kind = str(metric.WhichOneof("data"))
            data = getattr(metric, kind)
            for point in data.data_points:
                about = (service, metric.name, metric.unit, kind, int(getattr(data, "aggregation_temporality", 0)))
                attributes = _attributes(point.attributes)
                traces = tuple(exemplar.trace_id.hex() for exemplar in point.exemplars)
                if kind == "histogram":
                    buckets, bounds = tuple(point.bucket_counts), tuple(point.explicit_bounds)
                    yield Point(*about, attributes, point.sum, point.count, buckets, bounds, traces)
                else:
                    value = point.as_int if point.WhichOneof("value") == "as_int" else point.as_double
                    yield Point(*about, attributes, float(value), traces=traces)


@contextmanager
def receiver() -> Iterator[Received]:
    """Receives until the block is left."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            time.sleep(received.delay)
            with received.changed:
                if self.path == "/v1/traces":
                    received.spans += _spans(body)
                elif self.path == "/v1/metrics":
                    received.points += _points(body)
                received.changed.notify_all()
            self.send_response(received.status)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    received = Received(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

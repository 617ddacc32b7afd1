"""Whose tracer is used: the application's whenever it has one, a private one if only the environment asks for it.

OpenTelemetry's global provider can be set once, so it is never set here. An application may set its own at any
moment, which is why the question is asked anew for each span.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from otel_mcp_resume.report.fields import SCOPE
from otel_mcp_resume.versions import installed_version

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider

__all__ = ["Tracing", "wants_export"]

_EXPORTER = "OTEL_TRACES_EXPORTER"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def wants_export(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks for traces: an OTLP endpoint or exporter is named, and none is not."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environ.get(_EXPORTER, "").strip().lower()
    if exporter:
        return "otlp" in exporter.split(",")
    return any(environ.get(name) for name in _ENDPOINTS)


class Tracing:
    """Gives the tracer for the next span."""

    def __init__(self, given: Callable[[], TracerProvider | None], on_error: Callable[[str, Exception], None]) -> None:
        """`given` tells the provider that was handed over at activation, if any."""
        self._given = given
        self._on_error = on_error
        self._private: TracerProvider | None = None
        self._wanted = wants_export(os.environ)
        self._tracers: dict[int, tuple[Any, Tracer]] = {}

    def after_fork(self) -> None:
        """In a forked child: an exporter's thread is the parent's. The next span makes a new one."""
        self._private = None
        self._tracers.clear()

    def tracer(self) -> Tracer | None:
        """The tracer to use now, None if nobody would take a span."""
        provider = self._given() or self._global() or self._own()
        if provider is None:
            return None
        known = self._tracers.get(id(provider))
        if known is None or known[0] is not provider:
            known = provider, provider.get_tracer(SCOPE, installed_version() or None)
            self._tracers = {id(provider): known}
        return known[1]

    @staticmethod
    def _global() -> TracerProvider | None:
        provider = trace.get_tracer_provider()
        return None if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)) else provider

    def _own(self) -> TracerProvider | None:
        if self._private is None and self._wanted:
            self._wanted = False
            try:
                self._private = _private_provider()
            except Exception as error:  # noqa: BLE001 - a missing exporter costs the traces, and nothing else
                self._on_error("report.spans", error)
        return self._private

    def close(self) -> None:
        """Exports what the private provider still holds. The application's provider is the application's."""
        private: Any = self._private
        if private is not None:
            private.shutdown()


def _private_provider() -> TracerProvider:
    """Raises ImportError without the extra `otlp`."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider

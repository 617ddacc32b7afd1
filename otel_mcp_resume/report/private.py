"""Private OpenTelemetry providers, for processes whose environment asks for an export and whose application has none.

The SDK's own parts are used as they are: resource, sampler, limits, intervals and endpoints come from the environment.
Only the end differs: the SDK would wait for half a minute for a collector that hangs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from otel_mcp_resume.report.fields import PLUGIN_LOGGER

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

__all__ = ["Close", "Signal", "meter_provider", "tracer_provider", "wants_export"]

Signal = Literal["traces", "metrics"]
Close = Callable[[], None]

PATIENCE = 3_000
"""Milliseconds that the end of a process may wait for what is still to be sent, for each signal."""
_MODULES = {"traces": "trace_exporter", "metrics": "metric_exporter"}
_CLASSES = {"traces": "OTLPSpanExporter", "metrics": "OTLPMetricExporter"}


def wants_export(environ: Mapping[str, str], signal: Signal) -> bool:
    """Whether the environment asks for it: an OTLP endpoint or exporter is named, and none is not."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporters = environ.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip().lower()
    if exporters:
        return "otlp" in [name.strip() for name in exporters.split(",")]
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
    return any(environ.get(name) for name in names)


def tracer_provider(environ: Mapping[str, str]) -> tuple[TracerProvider, Close] | None:
    """A provider that exports spans, and what ends it. None, with a warning, if the exporter is not installed."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    exporter = _exporter(environ, "traces")
    if exporter is None:
        return None
    provider = TracerProvider(shutdown_on_exit=False)
    processor = BatchSpanProcessor(exporter())
    provider.add_span_processor(processor)
    batch: Any = getattr(processor, "_batch_processor", None)  # the public `shutdown` takes no limit of time

    def close() -> None:
        if batch is not None:
            batch.shutdown(timeout_millis=PATIENCE)
        provider.shutdown()

    return provider, close


def meter_provider(environ: Mapping[str, str], is_needed: Callable[[], bool]) -> tuple[MeterProvider, Close] | None:
    """The same for metrics. Nothing is sent while `is_needed` says no: the application has a provider by now."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricExportResult, PeriodicExportingMetricReader

    base = _exporter(environ, "metrics")
    if base is None:
        return None

    send: Any = base.export

    class Exporter(base):  # type: ignore[misc,valid-type] # whichever of two classes is installed and asked for
        def export(self, *args: Any, **kwargs: Any) -> Any:
            return send(self, *args, **kwargs) if is_needed() else MetricExportResult.SUCCESS

    reader = PeriodicExportingMetricReader(Exporter())
    provider = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
    return provider, lambda: provider.shutdown(timeout_millis=PATIENCE)


def _exporter(environ: Mapping[str, str], signal: Signal) -> Any:
    names = (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    protocol = next((environ[name].strip() for name in names if environ.get(name)), "http/protobuf")
    way = "grpc" if protocol == "grpc" else "http"
    try:
        module = import_module(f"opentelemetry.exporter.otlp.proto.{way}.{_MODULES[signal]}")
    except ImportError:
        package = f"opentelemetry-exporter-otlp-proto-{way}"
        logging.getLogger(PLUGIN_LOGGER).warning(
            "otel-mcp-resume: the environment asks for %s over OTLP, but %s is not installed: none are sent%s",
            signal,
            package,
            " (it comes with otel-mcp-resume[otlp])" if way == "http" else "",
        )
        return None
    return getattr(module, _CLASSES[signal])

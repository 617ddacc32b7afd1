"""What is compared: the bare SDK, the plugin, and other instrumentations, if they are installed."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

__all__ = ["AGAIN", "ARMS", "BARE", "Arm", "available", "enter"]

Flush = Callable[[], object]


@dataclass(frozen=True)
class Arm:
    """One way to run a server and a client."""

    name: str
    title: str
    environ: dict[str, str] = field(default_factory=dict)
    instrumentor: str = ""
    """`module:class` of what a process turns on by itself, with a tracer provider that exports to the sink."""
    package: str = ""
    """The distribution without which there is no such arm."""

    def variables(self) -> dict[str, str]:
        """The environment of its processes: nothing of OpenTelemetry or ours but what the arm says."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "PROMETHEUS_"))}
        return clean | {"NO_PROXY": "*", "no_proxy": "*", "PYTHONHASHSEED": "0"} | self.environ


BARE, AGAIN = "bare", "again"
ARMS = {
    arm.name: arm
    for arm in (
        Arm(BARE, "bare SDK"),
        Arm(AGAIN, "bare SDK again"),
        Arm("plugin", "plugin", {"OTEL_MCP_RESUME": "1", "OTEL_EXPORTER_PROMETHEUS_PORT": "0"}),
        Arm(
            "spans",
            "plugin with spans exported",
            {"OTEL_EXPORTER_PROMETHEUS_PORT": "0"},
            "otel_mcp_resume:McpResumeInstrumentor",
        ),
        Arm(
            "traceloop",
            "opentelemetry-instrumentation-mcp",
            {"TRACELOOP_METRICS_ENABLED": "false"},
            "opentelemetry.instrumentation.mcp:McpInstrumentor",
            "opentelemetry-instrumentation-mcp",
        ),
        Arm(
            "openinference",
            "openinference-instrumentation-mcp",
            {},
            "openinference.instrumentation.mcp:MCPInstrumentor",
            "openinference-instrumentation-mcp",
        ),
    )
}


def available() -> list[str]:
    """The arms that can run here. The one of 1.x alone breaks on 2.x."""
    found = [name for name, arm in ARMS.items() if not arm.package or _is_installed(arm.package)]
    return [name for name in found if name != "traceloop" or version("mcp").startswith("1.")]


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def enter(name: str, sink: str) -> Flush:
    """In a process of the arm, before mcp is imported: turns on what it is about. What sends all spans at once."""
    arm = ARMS[name]
    if not arm.instrumentor:
        return lambda: None
    trace: Any = importlib.import_module("opentelemetry.sdk.trace")
    export: Any = importlib.import_module("opentelemetry.sdk.trace.export")
    exporter: Any = importlib.import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    provider = trace.TracerProvider()
    provider.add_span_processor(export.BatchSpanProcessor(exporter.OTLPSpanExporter(endpoint=sink)))
    module, _, attribute = arm.instrumentor.partition(":")
    getattr(importlib.import_module(module), attribute)().instrument(tracer_provider=provider)
    flush: Flush = provider.force_flush
    return flush

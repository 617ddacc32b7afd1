"""Where the numbers go under given settings, in words for a person."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping
from pathlib import Path

from otel_mcp_resume.exporter import LAST_PORT, MORE_PORTS
from otel_mcp_resume.settings import METRICS_OTEL, METRICS_PROMETHEUS, Settings
from otel_mcp_resume.versions import has_module

__all__ = ["destinations"]

_OTLP = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_EXPORTER = "opentelemetry.exporter.otlp.proto"
_EXTRA = "otel-mcp-resume[otlp]"
_SHARED = "PROMETHEUS_MULTIPROC_DIR"


def destinations(settings: Settings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """One line for each place."""
    lines: list[str] = []
    if METRICS_PROMETHEUS in settings.metrics:
        lines += [_endpoint(settings.prometheus_host, settings.prometheus_port)]
        lines += ["prometheus_client's default registry, for an application that serves it"]
        if directory := environ.get(_SHARED):
            missing = "" if Path(directory).is_dir() else ", which does not exist"
            lines.append(f"shared by worker processes in {directory}{missing}")
    if METRICS_OTEL in settings.metrics:
        lines.append(f"OpenTelemetry: the application's meter provider, {_without_one(environ)}")
    return tuple(lines) or ("nowhere: OTEL_MCP_RESUME_METRICS is none",)


def _without_one(environ: Mapping[str, str]) -> str:
    endpoint = next((environ[name] for name in _OTLP if environ.get(name)), None)
    if endpoint is None:
        return "and nowhere if it sets none"
    missing = "" if has_module(_EXPORTER) else f", but for that {_EXTRA} is not installed: nothing would be sent"
    return f"or {endpoint} where it has none{missing}"


def _endpoint(host: str, port: int | None) -> str:
    if port is None:
        return "no /metrics of our own"
    if port == 0:
        return f"http://{_bracketed(host)}:PORT/metrics, on a free port that is logged at the start"
    return f"http://{_bracketed(host)}:{port}/metrics{_trouble(host, port)}"


def _trouble(host: str, port: int) -> str:
    error = _refusal(host, port)
    if error is None:
        return ""
    if error.errno != errno.EADDRINUSE:
        return f", which cannot be had on this machine ({error.strerror or error}): nothing would be served"
    for other in range(port + 1, min(port + MORE_PORTS, LAST_PORT) + 1):
        if _refusal(host, other) is None:
            return f", taken at this moment, maybe by an application with the plugin: another one would get {other}"
    return f", taken at this moment like the {MORE_PORTS} above: another application would serve nothing"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _refusal(host: str, port: int) -> OSError | None:
    """Why nobody can listen there, None if one can."""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
    except OSError as error:
        return error
    return None

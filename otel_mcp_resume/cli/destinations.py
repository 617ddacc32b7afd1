"""Where the numbers go under given settings, in words for a person."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping
from pathlib import Path

from otel_mcp_resume.settings import METRICS_OTEL, METRICS_PROMETHEUS, Settings

__all__ = ["destinations"]

_OTLP = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
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
        endpoint = next((environ[name] for name in _OTLP if environ.get(name)), None)
        private = f", or {endpoint} where it has none" if endpoint else ""
        lines.append(f"OpenTelemetry: the application's meter provider{private}")
    return tuple(lines) or ("nowhere: OTEL_MCP_RESUME_METRICS is none",)


def _endpoint(host: str, port: int | None) -> str:
    if port is None:
        return "no /metrics of our own"
    if port == 0:
        return f"http://{_bracketed(host)}:PORT/metrics, on a free port that is logged at the start"
    taken = ", taken at this moment: another process would get the next free port" if _is_taken(host, port) else ""
    return f"http://{_bracketed(host)}:{port}/metrics{taken}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_taken(host: str, port: int) -> bool:
    """Whether somebody listens there. A host that cannot be resolved is somebody else's message."""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from otel_mcp_resume.cli.demo.findings import Finding, NoMetricsError, read_findings

LABELS = ("side", "generation", "previous_generation", "stream", "outcome", "reason")


@dataclass
class Process:
    """A `/metrics` as a process of the demo has it, with counters of our own making."""

    registry: CollectorRegistry
    port: int


@pytest.fixture
def process() -> Iterator[Process]:
    registry = CollectorRegistry()
    server, thread = start_http_server(0, "127.0.0.1", registry)
    yield Process(registry, server.server_port)
    server.shutdown()
    server.server_close()
    thread.join()


def test_counts_are_added_up_over_the_labels_that_no_verdict_is_about(process: Process) -> None:
    Gauge("mcp_resume_info", "i", registry=process.registry).set(1)
    attempts = Counter("mcp_resume_attempts", "a", LABELS, registry=process.registry)
    attempts.labels("client", "sse", "sse", "request", "gap", "session_changed").inc()
    attempts.labels("client", "sse", "stateless", "request", "gap", "session_changed").inc(2)
    attempts.labels("client", "sse", "sse", "request", "proven", "marker")  # born at 0
    Counter("mcp_resume_violations", "v", ("side", "rule"), registry=process.registry).labels("client", "x").inc()
    assert asyncio.run(read_findings("client", process.port)) == {
        Finding("client", "mcp_resume_attempts_total", "request", ("gap", "session_changed")): 1,
        Finding("client", "mcp_resume_attempts_total", "request", ("gap", "session_changed"), "stateless"): 2,
        Finding("client", "mcp_resume_violations_total", "", ("x",)): 1,
    }


def test_metrics_of_somebody_else_are_no_metrics_of_ours(process: Process) -> None:
    with pytest.raises(NoMetricsError, match="client has no metrics of the plugin"):
        asyncio.run(read_findings("client", process.port))


def test_a_port_where_nobody_listens_is_told_with_its_number() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        with pytest.raises(NoMetricsError, match=rf"server serves no /metrics on port {port}"):
            asyncio.run(read_findings("server", port))

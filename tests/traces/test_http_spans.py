"""Spans that instrumentations of the HTTP client and the web server make of MCP exchanges."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.instrumentation import auto_instrumentation

from tests.traces.plays import play, playing, to
from tests.traces.receiver import Received, Sent, receiver

pytestmark = [pytest.mark.full]

SCRIPT = Path(__file__).with_name("ordered.py")
CLIENT, SERVER = 3, 2


@pytest.fixture(scope="module")
def instrumented() -> Received:
    """A cut call, in processes that run as under `opentelemetry-instrument`."""
    variables = {
        "PYTHONPATH": os.pathsep.join([str(Path(str(auto_instrumentation.__file__)).parent), *sys.path]),
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    }
    with receiver() as received:
        result = play("resume", {**to(received.url), **variables})
    assert result.as_wanted, result.verdict
    return received


def requests(received: Received, kind: int) -> list[Sent]:
    """The spans of whole HTTP requests, on one side."""
    names = {"GET", "POST", "DELETE"}
    found = [span for span in received.spans if span.kind == kind and span.name.split()[0] in names]
    assert len(found) > 5
    return found


@pytest.mark.parametrize("kind", [CLIENT, SERVER])
def test_every_request_names_its_session_and_stream(instrumented: Received, kind: int) -> None:
    (session_id,) = {span.attributes["mcp.session.id"] for span in instrumented.named("mcp.session")}
    spans = requests(instrumented, kind)
    assert {span.attributes.get("mcp.session.id") for span in spans} == {session_id}
    streams = sorted(span.attributes["mcp.resume.stream"] for span in spans if "mcp.resume.stream" in span.attributes)
    assert streams[-1] == "standalone"
    assert streams.count("request") >= 3
    (token,) = {span.attributes["mcp.resume.token"] for span in instrumented.named("mcp.resume")}
    assert [span.name.split()[0] for span in spans if span.attributes.get("mcp.resume.token") == token] == ["GET"]


def test_a_resumption_is_one_trace_through_all_layers(instrumented: Received) -> None:
    spans = {span.span_id: span for span in instrumented.spans}
    (inner,) = instrumented.named("mcp.resume", mcp__resume__side="server")
    (outer,) = instrumented.named("mcp.resume", mcp__resume__side="client")
    server = spans[inner.parent_id]
    client = spans[server.parent_id]
    assert (server.kind, client.kind) == (SERVER, CLIENT)
    assert client.parent_id == outer.span_id
    assert {span.trace_id for span in (inner, server, client, outer)} == {outer.trace_id}


def test_our_spans_go_to_the_applications_provider_alone(instrumented: Received) -> None:
    assert {span.resource.get("telemetry.auto.version") is not None for span in instrumented.spans} == {True}
    ids = [span.span_id for span in instrumented.spans]
    assert len(ids) == len(set(ids))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server that nobody cuts."""
    with receiver() as received, playing("resume", to(received.url)) as scene:
        yield f"http://127.0.0.1:{scene.port('server')}/mcp"


@pytest.mark.parametrize("order", ["ours,theirs,mcp", "theirs,ours,mcp", "mcp,ours,theirs", "mcp,theirs,ours"])
def test_the_users_own_hooks_work_in_any_order(server: str, order: str) -> None:
    environ = {**os.environ, "OTEL_EXPORTER_PROMETHEUS_PORT": "none"}
    command = [sys.executable, str(SCRIPT), order, server]
    run = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    seen: list[dict[str, Any]] = json.loads(run.stdout)
    *spans, application = seen
    assert application == {}
    assert {span["app.request"] for span in spans} == {"GET", "POST", "DELETE"}
    assert all(200 <= span["app.status"] < 300 for span in spans)
    assert len({span["mcp.session.id"] for span in spans}) == 1
    assert {span.get("mcp.resume.stream") for span in spans} == {"request", "standalone", None}

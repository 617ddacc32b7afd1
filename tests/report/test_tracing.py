"""Which provider gets our spans. Each case is a process of its own: OpenTelemetry's global provider can be set once."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time

import pytest

from otel_mcp_resume.report.private import wants_export
from tests.traces.receiver import Received, receiver

START = """
import os, sys, time
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.resources import Resource
from otel_mcp_resume.plugin import Plugin, Providers
from otel_mcp_resume.report.meters import Meters
from otel_mcp_resume.rules.terms import Generation, Side
from otel_mcp_resume.settings import Settings
from otel_mcp_resume.watch.facts import Context, Node, SessionClosed, SessionOpened

theirs = InMemorySpanExporter()

def set_up(**options):
    provider = TracerProvider(**options)
    provider.add_span_processor(SimpleSpanProcessor(theirs))
    return provider

providers = Providers()
settings, _ = Settings.from_environ({"OTEL_EXPORTER_PROMETHEUS_PORT": "none", **os.environ})
plugin = Plugin(settings, providers)
plugin.metrics.begin(Side.CLIENT)

def session(name):
    here, node = (Side.CLIENT, Generation.SSE), Node()
    plugin.runtime.report([SessionOpened(*here, node, Context(session_id=name))])
    plugin.runtime.report([SessionClosed(*here, node)])

def names(exporter):
    return [span.attributes["mcp.session.id"] for span in exporter.get_finished_spans()]

def faults():
    return sum(
        sample.value
        for family in plugin.metrics.collect()
        for sample in family.samples
        if sample.name == "mcp_resume_internal_errors_total"
    )
"""


def run(script: str, received: Received | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    if received is not None:
        environ |= {"OTEL_EXPORTER_OTLP_ENDPOINT": received.url, "OTEL_SERVICE_NAME": "app"}
    command = [sys.executable, "-c", START + textwrap.dedent(script)]
    return subprocess.run(
        command,
        env={**environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def ok(run: subprocess.CompletedProcess[str]) -> str:
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def sessions(received: Received) -> list[str]:
    return [span.attributes["mcp.session.id"] for span in received.spans]


@pytest.mark.parametrize(
    ("environ", "traces"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://x"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, False),
        ({"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, False),
    ],
)
def test_what_asks_for_an_export(environ: dict[str, str], traces: bool) -> None:
    assert wants_export(environ, "traces") is traces


def test_an_application_that_sets_up_its_own_later_takes_over() -> None:
    with receiver() as received:
        out = run(
            """
            session("before")
            trace.set_tracer_provider(set_up())
            session("after")
            print(names(theirs), type(trace.get_tracer_provider()).__name__)
            """,
            received,
        )
    assert ok(out) == "['after'] TracerProvider"
    assert sessions(received) == ["before"]
    assert {(span.service, span.scope) for span in received.spans} == {("app", "otel_mcp_resume")}


def test_one_that_was_set_up_before_is_used_alone() -> None:
    with receiver() as received:
        out = run("trace.set_tracer_provider(set_up()); session('x'); print(names(theirs))", received)
    assert ok(out) == "['x']"
    assert received.spans == []


def test_a_provider_that_was_handed_over_wins() -> None:
    out = run(
        """
        trace.set_tracer_provider(TracerProvider())
        session("lost on them")
        providers.adopt(Providers(tracer_provider=set_up()))
        session("x")
        print(names(theirs))
        """
    )
    assert ok(out) == "['x']"


def test_no_global_provider_is_ever_set() -> None:
    with receiver() as received:
        out = run("session('x'); print(type(trace.get_tracer_provider()).__name__)", received)
    assert ok(out) == "ProxyTracerProvider"
    assert sessions(received) == ["x"]


@pytest.mark.parametrize(
    "variables",
    [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_TRACES_SAMPLER": "always_off"}],
)
def test_what_the_environment_switches_off_is_off(variables: dict[str, str]) -> None:
    with receiver() as received:
        assert ok(run("session('x'); print(faults())", received, **variables)) == "0.0"
    assert received.spans == []


def test_resource_attributes_and_limits_of_the_environment_hold() -> None:
    variables = {"OTEL_RESOURCE_ATTRIBUTES": "team=blue", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "2"}
    with receiver() as received:
        ok(run("session('x')", received, **variables))
    (span,) = received.spans
    assert span.resource["team"] == "blue"
    assert len(span.attributes) == 2


def test_a_missing_exporter_is_a_warning_that_names_it() -> None:
    script = """
        sys.modules["opentelemetry.exporter.otlp.proto.http.trace_exporter"] = None
        session("x"); session("y")
        print(faults())
        """
    out = run(script, OTEL_TRACES_EXPORTER="otlp")
    assert ok(out) == "0.0"
    assert out.stderr.count("otel-mcp-resume[otlp]") == 1


def test_the_end_of_a_process_waits_for_a_collector_that_hangs_but_not_long() -> None:
    with receiver() as received:
        received.delay = 60
        started = time.monotonic()
        out = run("session('x'); print('end', flush=True)", received)
        took = time.monotonic() - started
        assert ok(out) == "end"
        received.delay = 0
    assert took < 30  # it hangs for twice that


def test_a_forked_child_sends_what_it_saw_and_nothing_of_its_parents() -> None:
    script = """
        session("parent")
        child = os.fork()
        if child == 0:
            plugin.after_fork()
            session("child")
            plugin.tracing.close()
            os._exit(0)
        os.waitpid(child, 0)
        """
    with receiver() as received:
        ok(run(script, received))
    assert sorted(sessions(received)) == ["child", "parent"]


def test_numbers_of_a_private_provider_come_at_the_end_and_once() -> None:
    script = """
        plugin.meters.start()
        session("x")
        """
    with receiver() as received:
        ok(run(script, received, OTEL_MCP_RESUME_METRICS="otel"))
    points = [point for point in received.points if point.name == "mcp.resume.open_sessions"]
    assert len(points) == len({tuple(point.attributes.values()) for point in points}) > 0


def test_a_private_meter_provider_falls_silent_once_the_application_has_one() -> None:
    script = """
        from opentelemetry import metrics
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        plugin.meters.start()
        session("x")
        reader = InMemoryMetricReader()
        metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
        scopes = reader.get_metrics_data().resource_metrics[0].scope_metrics
        print([len(each.metrics) > 5 for each in scopes if each.scope.name == "otel_mcp_resume"], faults())
        """
    with receiver() as received:
        assert ok(run(script, received, OTEL_MCP_RESUME_METRICS="otel")) == "[True] 0.0"
    assert received.points == []


def test_delta_is_up_to_the_environment() -> None:
    variables = {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta", "OTEL_MCP_RESUME_METRICS": "otel"}
    with receiver() as received:
        ok(run("plugin.meters.start(); session('x')", received, **variables))
    sums = {point.temporality for point in received.points if point.kind == "sum"}
    assert sums == {1}  # AGGREGATION_TEMPORALITY_DELTA

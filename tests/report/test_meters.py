"""Numbers through OpenTelemetry: the same names, values and buckets, and never twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from opentelemetry import metrics as api
from opentelemetry.metrics import _internal
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider, ObservableCounter
from opentelemetry.sdk.metrics.export import AggregationTemporality, HistogramDataPoint, InMemoryMetricReader
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from opentelemetry.util._once import Once

from otel_mcp_resume.report import meters, names
from otel_mcp_resume.report.errors import Errors
from otel_mcp_resume.report.meters import Meters
from otel_mcp_resume.report.metrics import Metrics
from otel_mcp_resume.report.reporter import Reporter
from otel_mcp_resume.rules.terms import Generation, Outcome, Reason, Side, Stream
from otel_mcp_resume.watch.facts import AttemptSettled, Fact, Node, SessionOpened, StreamReopened

TRACE = 0x0AF7651916CD43DD8448EB211C80319C
NODE = Node()
NODE.made = NonRecordingSpan(SpanContext(TRACE, 0xB7AD6B7169203331, is_remote=False, trace_flags=TraceFlags(1)))
SETTLED = AttemptSettled(
    Side.CLIENT,
    Generation.STREAMABLE_HTTP,
    Generation.STREAMABLE_HTTP,
    Stream.STANDALONE,
    Outcome.GAP,
    Reason.SESSION_CHANGED,
    0.2,
    node=NODE,
)
REOPENED = StreamReopened(Side.CLIENT, Generation.STREAMABLE_HTTP, Stream.STANDALONE, 7.0, NODE)
DELTA: dict[type, AggregationTemporality] = dict.fromkeys(
    (Counter, ObservableCounter, Histogram), AggregationTemporality.DELTA
)


@pytest.fixture(autouse=True)
def no_global(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has its own global meter provider, which can be set once."""
    meters._made.pop(meters._GLOBAL, None)
    monkeypatch.setattr(_internal, "_METER_PROVIDER", None)
    monkeypatch.setattr(_internal, "_METER_PROVIDER_SET_ONCE", Once())
    monkeypatch.setattr(_internal, "_PROXY_METER_PROVIDER", _internal._ProxyMeterProvider())


class World:
    """A process in which numbers go through OpenTelemetry."""

    def __init__(self) -> None:
        self.given: MeterProvider | None = None
        self.metrics = Metrics()
        self.errors = Errors(self.metrics.internal_error)
        self.meters = Meters(self.metrics, lambda: self.given, self.errors)
        self.metrics.begin(Side.CLIENT)
        self._report = Reporter(self.metrics, lambda _, __: None, self.errors, meters=self.meters)

    def __call__(self, *facts: Fact) -> None:
        self._report(facts)


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.meters.close()


def provider(
    temporality: Mapping[type, AggregationTemporality] | None = None,
) -> tuple[MeterProvider, InMemoryMetricReader]:
    reader = InMemoryMetricReader(preferred_temporality=dict(temporality or {}))
    return MeterProvider(metric_readers=[reader], shutdown_on_exit=False), reader


def points(reader: InMemoryMetricReader) -> dict[str, dict[str, Any]]:
    """By metric, and by the values of its labels."""
    data = reader.get_metrics_data()
    return {
        metric.name: {",".join(map(str, (point.attributes or {}).values())): point for point in metric.data.data_points}
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def values(reader: InMemoryMetricReader) -> dict[str, dict[str, float]]:
    """Those that are no histograms, and not 0."""
    found = points(reader)
    return {
        name: moved
        for name, series in found.items()
        if (moved := {labels: point.value for labels, point in series.items() if getattr(point, "value", 0)})
    }


ATTEMPT = "client,streamable_http,streamable_http,standalone,gap,session_changed"


def test_the_same_names_units_and_series_as_at_metrics(world: World) -> None:
    set_up, reader = provider()
    api.set_meter_provider(set_up)
    world.meters.start()
    world(SETTLED, REOPENED, SessionOpened(Side.CLIENT, Generation.SSE))
    found = points(reader)
    here = {name.name: name for name in names.METRICS}
    exposed = {
        (here[sample.name].otel_name, ",".join(sample.labels.values())): sample.value
        for family in world.metrics.collect()
        for sample in family.samples
        if sample.name in here
    }
    sent = {
        (name, labels): point.value
        for name, series in found.items()
        for labels, point in series.items()
        if not isinstance(point, HistogramDataPoint)
    }
    assert sent == exposed
    assert len(sent) > 100


def test_the_same_buckets(world: World) -> None:
    set_up, reader = provider()
    api.set_meter_provider(set_up)
    world.meters.start()
    world(SETTLED, REOPENED)
    found = points(reader)
    verdict, downtime = found["mcp.resume.verdict"]["client,gap"], found["mcp.resume.downtime"]
    assert tuple(verdict.explicit_bounds) == names.VERDICT.buckets
    assert (verdict.count, verdict.sum, verdict.bucket_counts[3]) == (1, 0.2, 1)
    point = downtime["client,streamable_http,standalone"]
    assert tuple(point.explicit_bounds) == names.DOWNTIME.buckets
    assert (point.count, point.sum) == (1, 7.0)


def test_an_exemplar_leads_to_the_trace(world: World) -> None:
    set_up, reader = provider()
    api.set_meter_provider(set_up)
    world.meters.start()
    world(SETTLED)
    (exemplar,) = points(reader)["mcp.resume.verdict"]["client,gap"].exemplars
    assert exemplar.trace_id == TRACE


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_provider_that_is_set_up_before_or_after(world: World, when: str) -> None:
    set_up, reader = provider()
    if when == "before":
        api.set_meter_provider(set_up)
    world.meters.start()
    world(SETTLED)
    if when == "after":
        api.set_meter_provider(set_up)
    world(SETTLED)
    assert values(reader)["mcp.resume.attempts"] == {ATTEMPT: 2}


def test_a_provider_that_was_handed_over_is_the_only_one(world: World) -> None:
    others, other_reader = provider()
    api.set_meter_provider(others)
    world.given, reader = provider()
    world.meters.start()
    world(SETTLED)
    assert values(reader)["mcp.resume.attempts"] == {ATTEMPT: 1}
    assert points(other_reader) == {}


def test_a_provider_that_is_handed_over_later_takes_over(world: World) -> None:
    others, other_reader = provider()
    api.set_meter_provider(others)
    world.meters.start()
    world(SETTLED)
    assert values(other_reader)["mcp.resume.attempts"] == {ATTEMPT: 1}
    world.given, reader = provider()
    world(SETTLED)
    assert values(reader)["mcp.resume.attempts"] == {ATTEMPT: 2}
    assert "mcp.resume.attempts" not in values(other_reader)


def test_delta_and_cumulative_at_the_same_time(world: World) -> None:
    delta = InMemoryMetricReader(preferred_temporality=dict(DELTA))
    cumulative = InMemoryMetricReader()
    api.set_meter_provider(MeterProvider(metric_readers=[delta, cumulative], shutdown_on_exit=False))
    world.meters.start()
    world(SETTLED, SETTLED)
    for reader in (delta, cumulative):
        found = points(reader)
        assert found["mcp.resume.attempts"][ATTEMPT].value == 2
        assert found["mcp.resume.verdict"]["client,gap"].count == 2
    world(SETTLED)
    for reader, expected in ((delta, 1), (cumulative, 3)):
        found = points(reader)
        assert found["mcp.resume.attempts"][ATTEMPT].value == expected
        assert found["mcp.resume.verdict"]["client,gap"].count == expected


def test_nothing_is_observed_before_start_and_after_close(world: World) -> None:
    set_up, reader = provider()
    api.set_meter_provider(set_up)
    world(SETTLED)
    assert points(reader) == {}
    world.meters.start()
    assert "mcp.resume.attempts" in points(reader)
    world.meters.close()
    assert points(reader) == {}


def test_a_second_plugin_takes_over_from_the_first(world: World) -> None:
    set_up, reader = provider()
    api.set_meter_provider(set_up)
    world.meters.start()
    world(SETTLED, SETTLED)
    assert values(reader)["mcp.resume.attempts"] == {ATTEMPT: 2}
    world.meters.close()
    second = World()
    second.meters.start()
    second(SETTLED)
    assert values(reader)["mcp.resume.attempts"] == {ATTEMPT: 1}
    second.meters.close()


@pytest.mark.parametrize("temporality", [None, DELTA])
def test_a_meter_that_lives_through_a_fork_goes_on(world: World, temporality: Any) -> None:
    set_up, reader = provider(temporality)
    api.set_meter_provider(set_up)
    world.meters.start()
    world(SETTLED, SETTLED)
    assert points(reader)["mcp.resume.attempts"][ATTEMPT].value == 2
    world.metrics.after_fork()
    world.meters.after_fork()
    world(SETTLED)
    seen = points(reader)["mcp.resume.attempts"][ATTEMPT].value
    assert seen == (1 if temporality else 3)  # never less than before: that would be a negative delta


def test_a_reader_is_not_harmed_by_a_fault_of_ours(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    set_up, reader = provider()
    api.set_meter_provider(set_up)
    set_up.get_meter("theirs").create_counter("theirs").add(1)
    world.meters.start()

    def fails(_: object) -> Any:
        raise OSError("a file of another worker")

    monkeypatch.setattr(world.metrics, "read", fails)
    assert list(points(reader)) == ["theirs"]

"""An application that exports with OpenTelemetry's own Prometheus reader, into prometheus_client's default registry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import REGISTRY
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from otel_mcp_resume.report import names
from otel_mcp_resume.report.errors import Errors
from otel_mcp_resume.report.exposition import DefaultRegistry
from otel_mcp_resume.report.meters import Meters
from otel_mcp_resume.report.metrics import Metrics
from otel_mcp_resume.rules.terms import Generation, Side
from otel_mcp_resume.watch.facts import SessionOpened


class World:
    """A process whose numbers go both ways."""

    def __init__(self) -> None:
        self.given: MeterProvider | None = None
        self.metrics = Metrics()
        errors = Errors(self.metrics.internal_error)
        self.meters = Meters(self.metrics, lambda: self.given, errors)
        self.registry = DefaultRegistry(self.metrics, errors, lambda: self.meters.started)
        self.metrics.begin(Side.CLIENT)
        self.metrics.record(SessionOpened(Side.CLIENT, Generation.SSE))


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.registry.detach()
    made.meters.close()
    if made.given is not None:
        made.given.shutdown()


def exposed() -> Counter[tuple[str, str]]:
    """How often the endpoint shows each of our samples; the labels that OpenTelemetry adds are left out."""
    text: str = generate_latest(REGISTRY).decode()  # type: ignore[no-untyped-call] # half typed there
    return Counter(
        (
            sample.name,
            ",".join(sample.labels[label] for label in sorted(sample.labels) if not label.startswith("otel_")),
        )
        for family in text_string_to_metric_families(text)  # type: ignore[no-untyped-call] # see above
        for sample in family.samples
        if sample.name.startswith(names.PREFIX) and not sample.name.endswith("_created")
    )


def in_otel(world: World) -> None:
    world.given = MeterProvider(metric_readers=[PrometheusMetricReader()], shutdown_on_exit=False)
    world.meters.start()


def in_prometheus(world: World) -> None:
    world.registry.attach()


@pytest.mark.parametrize("steps", [(in_otel, in_prometheus), (in_prometheus, in_otel)])
def test_no_sample_is_there_twice_and_none_is_missing(world: World, steps: tuple[object, ...]) -> None:
    alone = World()
    alone.registry.attach()
    expected = exposed()
    alone.registry.detach()
    for step in steps:
        step(world)  # type: ignore[operator] # one of the two functions above
    found = exposed()
    assert set(found.values()) == {1}
    missing = {name for name, _ in expected.keys() - found.keys()}
    never_recorded = tuple(name.name for name in names.METRICS if name.kind == "histogram")
    assert all(name.startswith(never_recorded) for name in missing), missing
    assert found.keys() <= expected.keys()


def test_a_reader_that_does_not_show_ours_takes_nothing_away(world: World) -> None:
    others = MeterProvider(metric_readers=[PrometheusMetricReader()], shutdown_on_exit=False)
    world.given = MeterProvider(shutdown_on_exit=False)
    world.meters.start()
    world.registry.attach()
    found = exposed()
    others.shutdown()
    assert len(found) > 100

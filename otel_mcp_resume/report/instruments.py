"""The instruments of one OpenTelemetry meter: the names, values and buckets of `/metrics`, read from the one store.

Counters and gauges are observed, so that a message on the wire costs no more with them than without. The API has no
histogram that is observed; those of an attempt are recorded when it settles, which is rare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from opentelemetry.metrics import CallbackOptions, Observation

from otel_mcp_resume.report import names
from otel_mcp_resume.watch.facts import AttemptSettled, StreamReopened

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import Histogram, Meter

    from otel_mcp_resume.report.metrics import Metrics
    from otel_mcp_resume.report.names import MetricName
    from otel_mcp_resume.sdk.guard import ErrorSink
    from otel_mcp_resume.watch.facts import Fact

__all__ = ["Instruments"]

_Key = tuple[str, tuple[str, ...]]


class Instruments:
    """To be made once for a meter: it would go on with the callbacks of the first.

    Where the meter is OpenTelemetry's proxy, they come to life with the application's provider.
    """

    def __init__(self, meter: Meter) -> None:
        """Nothing is observed before `show`."""
        self._shown: tuple[Metrics, ErrorSink, Callable[[], bool]] | None = None
        self._seen: dict[_Key, float] = {}
        self._before_fork: dict[_Key, float] = {}
        self._histograms: dict[str, Histogram] = {}
        for name in names.METRICS:
            self._make(meter, name)

    def _make(self, meter: Meter, name: MetricName) -> None:
        about = {"unit": name.otel_unit, "description": name.help}
        if name.kind == "histogram":
            self._histograms[name.name] = meter.create_histogram(
                name.otel_name, **about, explicit_bucket_boundaries_advisory=name.buckets
            )
        elif name.kind == "counter":
            meter.create_observable_counter(name.otel_name, [partial(self._observe, name)], **about)
        else:
            meter.create_observable_gauge(name.otel_name, [partial(self._observe, name)], **about)

    def show(self, metrics: Metrics, on_error: ErrorSink, is_used: Callable[[], bool]) -> None:
        """Observes `metrics` from now on. While `is_used` says no, nothing: the same numbers go another way."""
        self._shown = metrics, on_error, is_used

    def after_fork(self) -> None:
        """In a forked child: ours begin at 0 again, but a meter that came along goes on from where it was."""
        self._before_fork = self._seen
        self._seen = {}

    def record(self, fact: Fact, context: Context | None) -> None:
        """Records the durations of `fact`. `context` holds the span that tells of it."""
        if isinstance(fact, AttemptSettled) and fact.elapsed is not None:
            labels = {"side": str(fact.side), "outcome": str(fact.outcome)}
            self._record(names.VERDICT, fact.elapsed, labels, context)
        elif isinstance(fact, StreamReopened):
            labels = {"side": str(fact.side), "generation": str(fact.generation), "stream": str(fact.stream)}
            self._record(names.DOWNTIME, fact.downtime, labels, context)

    def _record(self, name: MetricName, value: float, labels: Mapping[str, str], context: Context | None) -> None:
        self._histograms[name.name].record(value, labels, context)

    def _observe(self, name: MetricName, _: CallbackOptions) -> Iterable[Observation]:
        if self._shown is None:
            return ()
        metrics, on_error, is_used = self._shown
        try:
            return self._observations(name, metrics) if is_used() else ()
        except Exception as error:  # noqa: BLE001 - the application's reader collects others' metrics, too
            on_error("report.metrics", error)
            return ()

    def _observations(self, name: MetricName, metrics: Metrics) -> list[Observation]:
        if name is names.OLDEST_PENDING:
            metrics.refresh()
        observations: list[Observation] = []
        for labels, value in metrics.read(name):
            if name.kind == "counter":
                key = name.name, tuple(labels.values())
                value = self._seen[key] = value + self._before_fork.get(key, 0.0)  # noqa: PLW2901 - the same number, gone on
            observations.append(Observation(value, labels))
        return observations

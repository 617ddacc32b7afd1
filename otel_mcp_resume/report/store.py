"""The one store of every number: prometheus_client children, made from the table of names.

They are what survives several worker processes and carries exemplars, and a bound child is the cheapest
counter that is safe among threads. Other ways out read them; nothing is counted twice.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values
from prometheus_client.metrics import MetricWrapperBase

from otel_mcp_resume.report import names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otel_mcp_resume.report.names import MetricName
    from otel_mcp_resume.report.series import Series

__all__ = ["Children", "Store", "is_multiprocess", "multiprocess_directory", "open_store"]

M = TypeVar("M", bound=MetricWrapperBase)


def is_multiprocess() -> bool:
    """Whether prometheus_client keeps its values in files that worker processes share.

    It decides that once, when it is imported, by `PROMETHEUS_MULTIPROC_DIR`; the variable alone says nothing.
    """
    return bool(getattr(values.ValueClass, "_multiprocess", False))


def multiprocess_directory() -> str | None:
    """The directory of those files, or None if there are none."""
    return os.environ.get("PROMETHEUS_MULTIPROC_DIR") if is_multiprocess() else None


class Children(Generic[M]):
    """One metric, with its children by label values: asking prometheus_client for one costs some five increments."""

    __slots__ = ("_known", "_metric")

    def __init__(self, metric: M) -> None:
        self._metric = metric
        self._known: dict[tuple[str, ...], M] = {}

    def read(self) -> Iterator[tuple[dict[str, str], float]]:
        """The labels and the value of every series. Counters and gauges only."""
        for metric in self._metric.collect():
            for sample in metric.samples:
                if not sample.name.endswith("_created"):
                    yield sample.labels, sample.value

    def __call__(self, *labels: str) -> M:
        """The child of `labels`, which exists at 0 from now on."""
        child = self._known.get(labels)
        if child is None:
            child = self._known[labels] = self._metric.labels(*labels)
        return child


class Store:
    """Every metric of the table, in a registry of its own.

    In multi-process mode, making one opens files: `OSError` if the directory does not exist or is full.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._families: dict[str, Children[Any]] = {}
        self.attempts = self._counter(names.ATTEMPTS)
        self.violations = self._counter(names.VIOLATIONS)
        self.undelivered = self._counter(names.UNDELIVERED)
        self.events = self._counter(names.EVENTS)
        self.duplicates = self._counter(names.DUPLICATES)
        self.disconnects = self._counter(names.DISCONNECTS)
        self.open_streams = self._gauge(names.OPEN_STREAMS)
        self.open_sessions = self._gauge(names.OPEN_SESSIONS)
        self.pending = self._gauge(names.PENDING)
        self.oldest_pending = self._gauge(names.OLDEST_PENDING)
        self.downtime = self._histogram(names.DOWNTIME)
        self.verdict = self._histogram(names.VERDICT)
        self.evictions = self._counter(names.EVICTIONS)
        self.info = self._gauge(names.INFO)
        self.hook_installed = self._gauge(names.HOOK_INSTALLED)
        self.internal_errors = self._counter(names.INTERNAL_ERRORS)

    def read(self, name: MetricName) -> Iterator[tuple[dict[str, str], float]]:
        """The labels and the value of every series of a counter or a gauge."""
        return self._families[name.name].read()

    def create(self, series: Series) -> None:
        """Brings `series` into being at 0.

        A gauge is set, not only made: a file of a dead worker that had the same process id may hold an old value.
        """
        metric, labels = series
        child = self._families[metric.name](*labels)
        if metric.kind == "gauge":
            child.set(0)

    def _counter(self, name: MetricName) -> Children[Counter]:
        return self._family(name, Counter(name.name, name.help, name.labels, registry=self.registry))

    def _gauge(self, name: MetricName) -> Children[Gauge]:
        across = name.across or "livesum"
        gauge = Gauge(name.name, name.help, name.labels, registry=self.registry, multiprocess_mode=across)
        return self._family(name, gauge)

    def _histogram(self, name: MetricName) -> Children[Histogram]:
        histogram = Histogram(name.name, name.help, name.labels, registry=self.registry, buckets=name.buckets)
        return self._family(name, histogram)

    def _family(self, name: MetricName, metric: M) -> Children[M]:
        children = Children(metric)
        self._families[name.name] = children
        return children


_shared: list[Store] = []


def open_store() -> Store:
    """A new store, unless its values are in files.

    Those stay those of the process, whoever asks again: two children of one series would overwrite each other there.
    After a fork, they take to the files of the new process by themselves.
    """
    if not is_multiprocess():
        return Store()
    if not _shared:
        _shared.append(Store())
    return _shared[0]

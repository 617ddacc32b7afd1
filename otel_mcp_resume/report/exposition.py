"""What an endpoint shows: this process alone, or all worker processes that share a directory.

prometheus_client's default registry gets a collector that reads the one store, so that an application which serves
that registry shows our metrics, too.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import REGISTRY, CollectorRegistry, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from otel_mcp_resume.report.names import METRICS, PREFIX
from otel_mcp_resume.report.store import is_multiprocess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from otel_mcp_resume.report.metrics import Metrics
    from otel_mcp_resume.sdk.guard import ErrorSink

__all__ = ["DefaultRegistry", "of_all_workers", "our_registry"]

_OTEL_READER = "opentelemetry.exporter.prometheus"
_FILE_TRIES = 3
_FILE_PAUSE = 0.01
"""Seconds."""


class _Own:
    """A collector of this process's metrics."""

    def __init__(self, metrics: Metrics, on_error: ErrorSink) -> None:
        self._metrics = metrics
        self._on_error = on_error

    def describe(self) -> Iterable[Metric]:
        return [
            Metric(name.name.removesuffix("_total") if name.kind == "counter" else name.name, name.help, name.kind)
            for name in METRICS
        ]

    def collect(self) -> Iterable[Metric]:
        try:
            self._metrics.refresh()
        except Exception as error:  # noqa: BLE001 - an age that is unknown must not cost the numbers that are known
            self._on_error("report.metrics", error)
        return self._metrics.collect()


class _OfAllWorkers:
    """A collector of all worker processes' metrics. It claims no names, for they are claimed by nobody else."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        return of_all_workers(self._directory)


class _Guest(_Own):
    """The same in a registry of the application's, which must not lose its own metrics to a fault of ours."""

    def __init__(self, metrics: Metrics, on_error: ErrorSink, through_otel: Callable[[], bool]) -> None:
        super().__init__(metrics, on_error)
        self._through_otel = through_otel

    def describe(self) -> Iterable[Metric]:
        # A name that is claimed here would be refused to a MultiProcessCollector, which finds ours in the files.
        return [] if is_multiprocess() else super().describe()

    def collect(self) -> Iterable[Metric]:
        try:
            if _is_read_from_files() or (self._through_otel() and _is_read_by_otel()):
                return []
            return list(super().collect())
        except Exception as error:  # noqa: BLE001 - see above
            self._on_error("exporter", error)
            return []


class DefaultRegistry:
    """Our place in prometheus_client's default registry. Not thread-safe."""

    def __init__(self, metrics: Metrics, on_error: ErrorSink, through_otel: Callable[[], bool] = lambda: False) -> None:
        """`through_otel` tells whether the same numbers go through OpenTelemetry, whose reader may live there, too."""
        self._guest = _Guest(metrics, on_error, through_otel)
        self._attached = False

    def attach(self) -> None:
        """Shows our metrics there. Raises `ValueError` if somebody else has claimed a name of ours."""
        if not self._attached:
            REGISTRY.register(self._guest)
            self._attached = True

    def detach(self) -> None:
        """Takes them away again."""
        if self._attached:
            self._attached = False
            REGISTRY.unregister(self._guest)


def our_registry(metrics: Metrics, on_error: ErrorSink, directory: str | None) -> CollectorRegistry:
    """What our own endpoint serves: the workers that share `directory`, or this process if that is None."""
    registry = CollectorRegistry()
    registry.register(_Own(metrics, on_error) if directory is None else _OfAllWorkers(directory))
    return registry


def of_all_workers(directory: str) -> list[Metric]:
    """Our metrics of all processes that share `directory`, counters also of those that have ended.

    What is open or pending in a process that has ended is not: prometheus_client would show it for ever
    unless the application calls `mark_process_dead`, and not every server has a hook for that.
    """
    for _ in range(_FILE_TRIES - 1):
        with suppress(Exception):  # a file that is made or removed at this very moment fails in more ways than one
            return _merge(directory)
        time.sleep(_FILE_PAUSE)
    return _merge(directory)


def _merge(directory: str) -> list[Metric]:
    untyped: Any = MultiProcessCollector  # its `merge` has no annotations
    merge: Callable[[list[str]], Iterable[Metric]] = untyped.merge
    return [metric for metric in merge(_files(Path(directory))) if metric.name.startswith(PREFIX)]


def _files(directory: Path) -> list[str]:
    paths = list(directory.glob("*.db"))
    if (
        directory / f"counter_{os.getpid()}.db"
    ).exists():  # else something else names the files, and says not who lives
        paths = [path for path in paths if not _is_of_the_dead(path.name)]
    return list(map(str, paths))


def _is_of_the_dead(name: str) -> bool:
    """Whether the file holds gauges of living processes, as its name says, but its process has ended."""
    pid = name.removesuffix(".db").rpartition("_")[2]
    if os.name != "posix" or not name.startswith("gauge_live") or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it lives, and belongs to somebody else; or it is no process id at all
        return False
    return False


def _is_read_from_files() -> bool:
    """Whether the default registry shows the files of all processes already: ours are among them."""
    return any(isinstance(collector, MultiProcessCollector) for collector in _neighbours())


def _is_read_by_otel() -> bool:
    """Whether OpenTelemetry's own Prometheus reader shows our metrics in the default registry already."""
    readers = [other for other in _neighbours() if type(other).__module__.startswith(_OTEL_READER)]
    return any(metric.name.startswith(PREFIX) for reader in readers for metric in reader.collect())


def _neighbours() -> list[Any]:
    return list(getattr(REGISTRY, "_collector_to_names", ()))

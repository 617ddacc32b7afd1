"""Whose meter is used, when numbers go through OpenTelemetry: by the same rules as for traces.

Only one way is in use at a time, whatever the application sets up later: no backend gets a number twice.
The metrics API is imported when numbers go this way: by default they don't, and it costs a start ten milliseconds.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from opentelemetry import trace

from otel_mcp_resume.report import private
from otel_mcp_resume.report.fields import SCOPE
from otel_mcp_resume.report.spans import context_of
from otel_mcp_resume.versions import installed_version
from otel_mcp_resume.watch.facts import AttemptSettled, StreamReopened

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider

    from otel_mcp_resume.report.instruments import Instruments
    from otel_mcp_resume.report.metrics import Metrics
    from otel_mcp_resume.sdk.guard import ErrorSink
    from otel_mcp_resume.watch.facts import Fact

__all__ = ["Meters"]

Way = Literal["given", "global", "private"]


class _Global:
    """Stands for the global provider, before it was set and after."""


_GLOBAL = _Global()
_made: WeakKeyDictionary[Any, Instruments] = WeakKeyDictionary()
"""By provider, for the whole process: the plugin may be taken away and come back."""


class Meters:
    """Does nothing until `start`."""

    def __init__(self, metrics: Metrics, given: Callable[[], MeterProvider | None], on_error: ErrorSink) -> None:
        """`given` tells the provider that was handed over at activation, if any."""
        self._metrics = metrics
        self._given = given
        self._on_error = on_error
        self._started = False
        self._forked = False
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._private: tuple[MeterProvider, private.Close] | None = None
        self._wanted = private.wants_export(os.environ, "metrics")
        self._instruments: dict[Way, Instruments] = {}
        self._process = object()
        """Tells this process from its forked children."""

    @property
    def started(self) -> bool:
        """Whether numbers go this way at all."""
        return self._started

    def start(self) -> None:
        """Makes the instruments. A second call changes nothing."""
        self._started = True
        self._take(self._way())
        if "given" not in self._instruments:
            self._take("global")  # the application's provider may come at any moment, and asks nobody

    def __call__(self, fact: Fact) -> None:
        """Records the durations that `fact` tells of. Raises what the application's meter raises."""
        if not self._started:
            return
        if isinstance(fact, (AttemptSettled, StreamReopened)):
            self._take(self._way()).record(fact, _context(fact))
        elif self._forked:
            self._take(self._way())
        self._forked = False

    def after_fork(self) -> None:
        """In a forked child: the exporter's thread and connection are the parent's. The next fact makes new ones."""
        kept = self._instruments
        self._forked = True
        self._reset()
        for way in ("given", "global"):
            if way in kept:
                kept[way].after_fork()
                self._instruments[way] = kept[way]

    def close(self) -> None:
        """Sends what a private provider has, for a few seconds at most. Nothing is observed from now on."""
        own = self._private
        atexit.unregister(self.close)
        try:
            if own is not None and self._started:
                own[1]()
        finally:
            self._started = False
            self._private = None

    def _way(self) -> Way:
        from opentelemetry.metrics import get_meter_provider

        given, global_ = self._given(), get_meter_provider()
        if given is not None and given is not global_:
            return "given"
        if _is_real(global_):
            return "global"
        if self._wanted:
            self._open()
        return "global" if self._private is None else "private"

    def _open(self) -> None:
        with self._lock:
            if not self._wanted:
                return
            try:
                process = self._process
                self._private = private.meter_provider(
                    os.environ, lambda: self._process is process and self._uses("private")
                )
                atexit.register(self.close)
            except Exception as error:  # noqa: BLE001 - no thread to be had: that costs this way out, and nothing else
                self._on_error("report.metrics", error)
            finally:
                self._wanted = False

    def _take(self, way: Way) -> Instruments:
        with self._lock:
            found = self._instruments.get(way)
            if found is None:
                found = self._instruments[way] = self._make(way)
                found.show(self._metrics, self._on_error, lambda: self._uses(way))
        return found

    def _make(self, way: Way) -> Instruments:
        from opentelemetry.metrics import get_meter_provider

        from otel_mcp_resume.report.instruments import Instruments

        provider = {"given": self._given(), "private": self._private and self._private[0]}.get(way)
        owner = provider or _GLOBAL
        found = _made.get(owner)
        if found is None:
            meter = (provider or get_meter_provider()).get_meter(SCOPE, installed_version() or None)
            found = _made[owner] = Instruments(meter)
        return found

    def _uses(self, way: Way) -> bool:
        return self._started and self._way() == way


def _is_real(provider: MeterProvider) -> bool:
    """Whether it is more than the API's own stand-ins, of which the proxy has no public name."""
    from opentelemetry.metrics import NoOpMeterProvider

    return not isinstance(provider, NoOpMeterProvider) and not type(provider).__name__.startswith("_Proxy")


def _context(fact: AttemptSettled | StreamReopened) -> Context | None:
    span = context_of(fact.node if isinstance(fact, AttemptSettled) else fact.attempt)
    return None if span is None else trace.set_span_in_context(trace.NonRecordingSpan(span))

"""The plugin that is on: its parts, built once, and the hooks that it has put in place."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from otel_mcp_resume.exporter import Exporter
from otel_mcp_resume.report.errors import Errors
from otel_mcp_resume.report.fields import PLUGIN_LOGGER
from otel_mcp_resume.report.http_spans import HttpSpans
from otel_mcp_resume.report.ids import Ids
from otel_mcp_resume.report.log import Log
from otel_mcp_resume.report.meters import Meters
from otel_mcp_resume.report.metrics import Metrics
from otel_mcp_resume.report.reporter import Reporter
from otel_mcp_resume.report.spans import Spans
from otel_mcp_resume.report.tracing import Tracing
from otel_mcp_resume.rules.terms import Side
from otel_mcp_resume.sdk.guard import Guard
from otel_mcp_resume.sdk.patches import Patches
from otel_mcp_resume.sdk.runtime import Runtime
from otel_mcp_resume.settings import METRICS_OTEL
from otel_mcp_resume.turns import Turns
from otel_mcp_resume.versions import installed_version
from otel_mcp_resume.watch.client import ClientWatch
from otel_mcp_resume.watch.deadlines import Deadlines
from otel_mcp_resume.watch.server import ServerWatch

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from otel_mcp_resume.rooms import Room
    from otel_mcp_resume.settings import Settings

__all__ = ["Plugin", "Providers"]


@dataclass(slots=True)
class Providers:
    """OpenTelemetry providers that the application handed over; None means its global ones."""

    tracer_provider: TracerProvider | None = None
    meter_provider: MeterProvider | None = None

    def adopt(self, others: Providers) -> None:
        """Takes over what is missing here: a later activation may bring what an earlier one could not know."""
        self.tracer_provider = self.tracer_provider or others.tracer_provider
        self.meter_provider = self.meter_provider or others.meter_provider


class Plugin:
    """Built by `activate`. Its hooks are put in place room by room, when the application imports what they are for."""

    def __init__(self, settings: Settings, providers: Providers) -> None:
        """Raises whatever a broken environment raises; imports nothing and touches nothing of the application's."""
        self.settings = settings
        self.providers = providers
        self.metrics = Metrics()
        self.errors = Errors(self.metrics.internal_error)
        self.deadlines = Deadlines(settings.proof_timeout, self.errors)
        self.meters = Meters(self.metrics, lambda: self.providers.meter_provider, self.errors)
        self.exporter = Exporter(self.metrics, settings, self.errors, lambda: self.meters.started)
        self.hooks: dict[str, bool] = {}
        """Every hook that was tried, and whether it is in place."""
        self.tracing = Tracing(lambda: self.providers.tracer_provider, self.errors)
        ids = Ids(settings)
        spans = Spans(self.tracing, ids)
        reporter = Reporter(self.metrics, Log(settings), self.errors, spans, self.meters)
        self.runtime = Runtime(
            patches=Patches(self._on_change),
            guard=Guard(self.errors),
            report=reporter,
            carry=spans.carry,
            drop=spans.drop,
            http_spans=HttpSpans(ids),
            client=ClientWatch(
                emit=reporter,
                events=partial(self.metrics.event_counter, Side.CLIENT),
                deadlines=self.deadlines,
                limits=settings,
                clock=time.monotonic,
            ),
            server=ServerWatch(
                emit=reporter,
                events=partial(self.metrics.event_counter, Side.SERVER),
                deadlines=self.deadlines,
                limits=settings,
                clock=time.monotonic,
            ),
        )
        self.metrics.watch_oldest_pending(self.runtime.server.oldest_pending)
        self._turns = Turns()
        self._rooms: set[Room] = set()
        self._closed = False

    def open(self, room: Room) -> None:
        """Puts the hooks of `room` in place, once. Never raises."""
        self._turns.run(partial(self._open, room))

    def close(self) -> None:
        """Takes every hook away and stops whatever runs. Never raises."""
        self._turns.run(self._close)

    def after_fork(self) -> None:
        """In a forked child: makes every lock and thread anew. Never raises."""
        parts = (self.metrics, self.errors, self.tracing, self.meters, self.deadlines, self.exporter)
        for part in (*parts, self.runtime.client, self.runtime.server, self._turns):
            try:
                part.after_fork()
            except Exception as error:  # noqa: BLE001 - the other parts count all the more
                self.errors("activate", error)

    def _open(self, room: Room) -> None:
        if self._closed or room in self._rooms:
            return
        try:
            self._install(room)
            self.metrics.info(installed_version(), installed_version("mcp"))
            self.metrics.begin(room.side)
            if METRICS_OTEL in self.settings.metrics:
                self.meters.start()
            self.exporter.start()
        except Exception as error:  # noqa: BLE001 - an import of the application's is under way and must succeed
            self.errors("activate", error)
        finally:
            self._rooms.add(room)

    def _install(self, room: Room) -> None:
        hooks = import_module(room.hooks)
        known = set(self.hooks)
        try:
            hooks.install(self.runtime)
        finally:
            for hook in hooks.HOOKS:
                if hook not in self.hooks:  # not even tried
                    self._on_change(hook, installed=False)
            self._warn_of([hook for hook, there in self.hooks.items() if hook not in known and not there])

    def _close(self) -> None:
        self._closed = True
        steps = (self.runtime.patches.remove_all, self.deadlines.close, self.exporter.stop)
        for step in (*steps, self.meters.close, self.tracing.close):
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the other steps count all the more
                self.errors("activate", error)

    def _on_change(self, hook: str, installed: bool) -> None:  # noqa: FBT001 - the signature that Patches calls
        self.hooks[hook] = installed
        self.metrics.hook_installed(hook, installed)

    @staticmethod
    def _warn_of(missing: list[str]) -> None:
        if missing:
            logging.getLogger(PLUGIN_LOGGER).warning(
                "otel-mcp-resume is partly blind: mcp %s lacks what it hooks into: %s",
                installed_version("mcp"),
                ", ".join(missing),
            )

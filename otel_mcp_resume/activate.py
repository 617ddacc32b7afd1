"""From the environment variable, the entry point or a call, to installed hooks: all four ways end in `activate`.

They may be combined in any order, repeatedly, and from several threads: the first builds the plugin, the others
find it there. What goes wrong costs a warning, never the application.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING

from otel_mcp_resume import _startup
from otel_mcp_resume.report.fields import PLUGIN_LOGGER
from otel_mcp_resume.settings import METRICS_OTEL, METRICS_PROMETHEUS, Settings

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from otel_mcp_resume.plugin import Plugin
    from otel_mcp_resume.rooms import Room

__all__ = [
    "ENTRY_POINT",
    "Way",
    "activate",
    "current",
    "deactivate",
    "default_metrics",
    "instrument",
    "is_auto_instrumented",
    "uninstrument",
    "ways",
]

_AUTO_INSTRUMENTATION = "opentelemetry.instrumentation.auto_instrumentation"
ENTRY_POINT = "mcp_resume"


class Way(str, Enum):
    """How the plugin was asked for."""

    ENVIRONMENT = "environment variable"
    ENTRY_POINT = "opentelemetry-instrument"
    INSTRUMENTOR = "McpResumeInstrumentor().instrument()"
    FUNCTION = "otel_mcp_resume.instrument()"


class _State:
    """What this process has. The lock is never held while something is imported or the application is called."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.plugin: Plugin | None = None
        self.ways: list[Way] = []
        self.watching = False


_state = _State()


def instrument(*, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None) -> bool:
    """Turns the plugin on in this process, whether `mcp` is imported already or not. Whether it is on afterwards.

    `OTEL_MCP_RESUME=0` keeps it off. The providers are used instead of the global ones. Never raises.
    """
    return activate(Way.FUNCTION, tracer_provider=tracer_provider, meter_provider=meter_provider)


def uninstrument() -> None:
    """Takes the plugin away, however it was turned on: every function of `mcp` is what it was before. Never raises."""
    deactivate()


def activate(
    way: Way, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
) -> bool:
    """What every way ends in. Whether the plugin is on afterwards. Never raises."""
    try:
        return _activate(way, tracer_provider, meter_provider)
    except Exception as error:  # noqa: BLE001 - a broken or missing library must not cost the application its start
        _warn([f"not enabled: {error!r}"])
        return False


def deactivate() -> None:
    """Takes the plugin away, and the environment variable's effect with it. Never raises."""
    plugin = _state.plugin
    try:
        _startup.stop()
        with _state.lock:
            plugin, _state.plugin = _state.plugin, None
            _state.ways.clear()
        if plugin is not None:
            plugin.close()
    except Exception as error:  # noqa: BLE001 - whoever switches us off has other things to end as well
        if plugin is not None:
            with suppress(Exception):
                plugin.runtime.patches.remove_all()
        _warn([f"not taken away in full: {error!r}"])


def current() -> Plugin | None:
    """The plugin, if it is on."""
    return _state.plugin


def ways() -> list[Way]:
    """How it was turned on, in the order of the calls."""
    return list(_state.ways)


def _activate(way: Way, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None) -> bool:
    settings, warnings = Settings.from_environ(os.environ, default_metrics=default_metrics(way))
    if settings.enabled is False or (way is Way.ENVIRONMENT and settings.enabled is None):
        _warn(warnings)
        return False
    from otel_mcp_resume.plugin import Plugin, Providers  # here, because a library that is missing is a warning

    providers = Providers(tracer_provider, meter_provider)
    with _state.lock:
        plugin = _state.plugin
        is_new = plugin is None
        if plugin is None:
            plugin = _state.plugin = Plugin(settings, providers)
        else:
            plugin.providers.adopt(providers)
        if way not in _state.ways:
            _state.ways.append(way)
    if is_new:
        _warn(warnings)
        _open_rooms()
    return True


def _open_rooms() -> None:
    from otel_mcp_resume.rooms import visit_imported, watch_imports

    with _state.lock:
        watching, _state.watching = _state.watching, True
    if not watching:
        os.register_at_fork(after_in_child=_after_fork)
        watch_imports(_open)
    else:
        visit_imported(_open)


def _open(room: Room) -> None:
    plugin = _state.plugin
    if plugin is not None:
        plugin.open(room)


def default_metrics(way: Way) -> frozenset[str]:
    """Under `opentelemetry-instrument` a process is meant to send its metrics where that sends all others."""
    return frozenset({METRICS_OTEL if way is Way.ENTRY_POINT or is_auto_instrumented() else METRICS_PROMETHEUS})


def is_auto_instrumented() -> bool:
    """Whether our entry point is called in this process, be it before the environment variable took effect or after."""
    disabled = {name.strip() for name in os.environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")}
    return _AUTO_INSTRUMENTATION in sys.modules and disabled.isdisjoint({ENTRY_POINT, "*"})


def _warn(warnings: list[str]) -> None:
    try:
        for warning in warnings:
            logging.getLogger(PLUGIN_LOGGER).warning("otel-mcp-resume: %s", warning)
    except Exception as error:  # noqa: BLE001 - a handler of the application's that raises must not cost it its start
        if _state.plugin is not None:
            _state.plugin.errors("activate", error)


def _after_fork() -> None:
    """Only this thread is left, and whatever another one held is held for ever: every lock is made anew."""
    _state.lock = threading.Lock()
    if _state.plugin is not None:
        _state.plugin.after_fork()

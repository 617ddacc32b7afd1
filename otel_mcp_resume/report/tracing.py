"""Whose tracer is used: the application's whenever it has one, a private one if only the environment asks for it.

OpenTelemetry's global provider can be set once, so it is never set here. An application may set its own at any
moment, which is why the question is asked anew for each span.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from opentelemetry import trace

from otel_mcp_resume.report import private
from otel_mcp_resume.report.fields import SCOPE
from otel_mcp_resume.versions import installed_version

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider

__all__ = ["Tracing"]


class Tracing:
    """Gives the tracer for the next span. Thread-safe."""

    def __init__(self, given: Callable[[], TracerProvider | None], on_error: Callable[[str, Exception], None]) -> None:
        """`given` tells the provider that was handed over at activation, if any."""
        self._given = given
        self._on_error = on_error
        self._known: tuple[TracerProvider, Tracer] | None = None
        self._closed = False
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._private: tuple[TracerProvider, private.Close] | None = None
        self._wanted = private.wants_export(os.environ, "traces")

    def after_fork(self) -> None:
        """In a forked child: an exporter's connection is the parent's. The next span makes a new one."""
        self._known = None
        self._start()

    def tracer(self) -> Tracer | None:
        """The tracer to use now, None if nobody would take a span."""
        provider = self._given() or self._global() or self._own()
        if provider is None:
            return None
        known = self._known
        if known is None or known[0] is not provider:
            known = self._known = provider, provider.get_tracer(SCOPE, installed_version() or None)
        return known[1]

    @staticmethod
    def _global() -> TracerProvider | None:
        provider = trace.get_tracer_provider()
        return None if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)) else provider

    def _own(self) -> TracerProvider | None:
        if self._wanted and not self._closed:
            self._open()
        return None if self._private is None else self._private[0]

    def _open(self) -> None:
        with self._lock:
            if not self._wanted:
                return
            try:
                self._private = private.tracer_provider(os.environ)
                atexit.register(self.close)
            except Exception as error:  # noqa: BLE001 - no thread to be had: that costs the traces, and nothing else
                self._on_error("report.spans", error)
            finally:
                self._wanted = False

    def close(self) -> None:
        """Exports what the private provider still holds, for a few seconds at most.

        The application's provider is the application's.
        """
        self._closed = True
        own, self._private = self._private, None
        atexit.unregister(self.close)
        if own is not None:
            own[1]()

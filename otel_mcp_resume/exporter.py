"""`/metrics` of this process, or of all worker processes that share `PROMETHEUS_MULTIPROC_DIR`.

Whatever goes wrong here is a warning. The application never learns of it.
"""

from __future__ import annotations

import errno
import logging
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import make_wsgi_app  # pyright: ignore[reportUnknownVariableType] - half typed there

from otel_mcp_resume.report.endpoint import Endpoint
from otel_mcp_resume.report.errors import Errors
from otel_mcp_resume.report.exposition import DefaultRegistry, our_registry
from otel_mcp_resume.report.fields import PLUGIN_LOGGER
from otel_mcp_resume.report.store import multiprocess_directory
from otel_mcp_resume.report.workers import Workers
from otel_mcp_resume.settings import METRICS_PROMETHEUS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from otel_mcp_resume.report.metrics import Metrics
    from otel_mcp_resume.sdk.guard import ErrorSink
    from otel_mcp_resume.settings import Settings

__all__ = ["Exporter"]

MORE_PORTS = 16
LAST_PORT = 65_535


class Exporter:
    """Shows metrics where the settings want them shown. To be started when the first hook is in place.

    A second `start` or `stop` changes nothing. Calls come from one thread at a time.
    """

    def __init__(
        self,
        metrics: Metrics,
        settings: Settings,
        on_error: ErrorSink | None = None,
        through_otel: Callable[[], bool] = lambda: False,
    ) -> None:
        """Opens nothing yet. `on_error` takes faults of ours; without it they are counted and logged here.

        `through_otel` tells whether the same numbers go through OpenTelemetry as well.
        """
        self._metrics = metrics
        self._settings = settings
        self._on_error = on_error or Errors(metrics.internal_error)
        self._default = DefaultRegistry(metrics, self._on_error, through_otel)
        self._endpoint: Endpoint | None = None
        self._workers: Workers | None = None
        self._started = False

    @property
    def url(self) -> str | None:
        """Where this process serves `/metrics`, if it does. Among worker processes that share files, one does."""
        return None if self._endpoint is None else self._endpoint.url

    def start(self) -> None:
        """Serves, unless the settings say otherwise. Never raises.

        A host name other than `localhost` is resolved here, in the calling thread.
        """
        if self._started or METRICS_PROMETHEUS not in self._settings.metrics:
            return
        self._started = True
        try:
            self._attach()
            directory = multiprocess_directory()
            if directory is None:
                self._serve(None)
            else:
                self._workers = Workers(
                    directory, self._metrics.refresh, lambda: self._serve(directory), self._on_error
                )
                self._workers.start()
        except Exception as error:  # noqa: BLE001 - no thread to be had, no descriptor left
            self._on_error("exporter", error)

    def stop(self) -> None:
        """Frees the port and leaves prometheus_client's default registry. Never raises."""
        self._started = False
        self._metrics.before_next_fact(None)
        workers, self._workers = self._workers, None
        try:
            if workers is not None:
                workers.stop()
            endpoint, self._endpoint = self._endpoint, None
            if endpoint is not None:
                endpoint.close()
            self._default.detach()
        except Exception as error:  # noqa: BLE001 - the application may be half torn down by now
            self._on_error("exporter", error)

    def after_fork(self) -> None:
        """In a forked child: lets go of what is the parent's, and starts anew with the first fact.

        A child that has nothing to do with MCP opens no port.
        """
        if not self._started:
            return
        self._started = False
        if self._endpoint is not None:
            self._endpoint.after_fork()
            self._endpoint = None
        if self._workers is not None:
            self._workers.after_fork()
            self._workers = None
        self._metrics.before_next_fact(self.start)

    def _attach(self) -> None:
        try:
            self._default.attach()
        except ValueError as error:
            _warn("prometheus_client's default registry lacks our metrics: %s", error)

    def _serve(self, directory: str | None) -> None:
        first = self._settings.prometheus_port
        if first is None:
            return
        host = self._settings.prometheus_host
        registry = our_registry(self._metrics, self._on_error, directory)
        serve: WSGIApplication = make_wsgi_app(registry)  # pyright: ignore[reportUnknownVariableType] - half typed there
        application = _guarded(serve, self._on_error)
        last = first if first == 0 else min(first + MORE_PORTS, LAST_PORT)
        for port in range(first, last + 1):
            try:
                self._endpoint = Endpoint(host, port, application, partial(self._on_error, "exporter"))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    continue
                _warn("no /metrics: %s:%d cannot be bound: %s", host, port, error)
                return
            if first == 0:
                _warn("/metrics is at %s, a free port was asked for", self._endpoint.url)
            elif port != first:
                _warn("port %d is taken, /metrics is at %s", first, self._endpoint.url)
            return
        _warn("no /metrics: ports %d to %d of %s are all taken", first, last, host)


def _warn(message: str, *args: object) -> None:
    logging.getLogger(PLUGIN_LOGGER).warning("otel-mcp-resume: %s", message % args)


def _guarded(application: WSGIApplication, on_error: ErrorSink) -> WSGIApplication:
    """A scrape that fails is a 500, so that the scraper's `up` is 0, and a fault of ours; wsgiref would print it."""

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            return list(application(environ, start_response))
        except Exception as error:  # noqa: BLE001 - see above
            on_error("exporter", error)
            start_response("500 Internal Server Error", [("Content-Type", "text/plain")])
            return [b"otel-mcp-resume failed to collect its metrics\n"]

    return app

"""The OpenTelemetry instrumentor, for the entry point `mcp_resume` and for code.

OpenTelemetry's loader stops instrumenting everything else when one instrumentor raises, so this one never does.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined] # mypy skips that file

from otel_mcp_resume import activate

__all__ = ["McpResumeInstrumentor"]


class McpResumeInstrumentor(BaseInstrumentor):  # type: ignore[misc] # see the import
    """Turns the plugin on like `otel_mcp_resume.instrument()`, in the manner of OpenTelemetry's instrumentors.

    `instrument()` takes `tracer_provider` and `meter_provider`; `OTEL_MCP_RESUME=0` keeps it from doing anything.
    """

    def instrumentation_dependencies(self) -> Collection[str]:
        """What is instrumented; the same as the extra `instruments`, which OpenTelemetry's loader reads instead."""
        return ("mcp >= 1.12, < 3",)

    def instrument(self, **kwargs: Any) -> None:
        """Turns the plugin on; where it is on already, only hands it the providers that it was not given yet."""
        # The loader has checked the dependencies itself and says so; nobody else does.
        self._way = activate.Way.ENTRY_POINT if kwargs.get("skip_dep_check") else activate.Way.INSTRUMENTOR
        if activate.current() is not None:
            self._instrument(**kwargs)
        else:
            super().instrument(**kwargs)

    def uninstrument(self, **kwargs: Any) -> None:
        """Turns the plugin off, whoever turned it on, or was about to."""
        self._uninstrument(**kwargs)

    def _instrument(self, **kwargs: Any) -> None:
        activate.activate(
            self._way,
            tracer_provider=kwargs.get("tracer_provider"),
            meter_provider=kwargs.get("meter_provider"),
        )

    def _uninstrument(self, **_: Any) -> None:
        activate.deactivate()

    # The base class remembers calls. What counts is whether the plugin is on, whoever turned it on or off.
    @property
    def _is_instrumented_by_opentelemetry(self) -> bool:
        return activate.current() is not None

    @_is_instrumented_by_opentelemetry.setter
    def _is_instrumented_by_opentelemetry(self, value: bool) -> None:
        pass

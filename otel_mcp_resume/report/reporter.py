"""The way of facts out of the process: first the numbers, then the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from otel_mcp_resume.report.metrics import Metrics
    from otel_mcp_resume.watch.facts import Fact

__all__ = ["Reporter"]


class Reporter:
    """Takes facts, in order, from any thread. What breaks inside is handed to `on_error`, never raised."""

    def __init__(
        self,
        metrics: Metrics,
        log: Callable[[Fact], None],
        on_error: Callable[[str, Exception], None],
    ) -> None:
        """`log` writes a record for the facts that have one. `on_error(hook, error)` must not raise."""
        self._metrics = metrics
        self._log = log
        self._on_error = on_error

    def __call__(self, facts: Iterable[Fact]) -> None:
        """All numbers move before the first record is written, so that a log that fails or is slow costs none."""
        facts = tuple(facts)
        for fact in facts:
            self._try("report.metrics", self._metrics.record, fact)
        for fact in facts:
            self._try("report.log", self._log, fact)

    def _try(self, hook: str, report: Callable[[Fact], None], fact: Fact) -> None:
        try:
            report(fact)
        except Exception as error:  # noqa: BLE001 - one number must not cost the others, and the log is the application's
            self._on_error(hook, error)

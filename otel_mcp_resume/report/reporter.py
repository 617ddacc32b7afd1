"""The way of facts out of the process: spans, so that the rest can name them, then numbers, then records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.trace import format_span_id, format_trace_id

from otel_mcp_resume.report import fields
from otel_mcp_resume.report.spans import context_of
from otel_mcp_resume.watch.facts import FACTS, AttemptSettled, StreamReopened, Violated

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from otel_mcp_resume.report.metrics import Metrics
    from otel_mcp_resume.watch.facts import Fact

    Trace = Mapping[str, str]

__all__ = ["Reporter"]

_OF_AN_ATTEMPT = frozenset((AttemptSettled, StreamReopened))


class Reporter:
    """Takes facts, in order, from any thread. What breaks inside is handed to `on_error`, never raised."""

    def __init__(
        self,
        metrics: Metrics,
        log: Callable[[Fact, Trace | None], None],
        on_error: Callable[[str, Exception], None],
        spans: Callable[[Fact], None] | None = None,
        meters: Callable[[Fact], None] | None = None,
    ) -> None:
        """`log` writes a record for the facts that have one. `on_error(hook, error)` must not raise.

        `spans` and `meters` go into the application's OpenTelemetry, if it has any. Each of the three may say in
        `takes` which types of facts it wants to see.
        """
        self._metrics = metrics
        self._log = log
        self._on_error = on_error
        ways = (
            ("report.spans", spans, _taken_by(spans)),
            ("report.metrics", self._count, None),
            ("report.metrics", meters, _taken_by(meters)),
            ("report.log", self._write, _taken_by(log)),
        )
        self._ways = tuple((hook, way, takes) for hook, way, takes in ways if way is not None)
        self._alone: dict[type, tuple[tuple[str, Callable[[Fact], None]], ...]] = {
            cls: tuple((hook, way) for hook, way, takes in self._ways if takes is None or cls in takes) for cls in FACTS
        }
        """The ways of a fact that comes alone, as most do."""

    def __call__(self, facts: Iterable[Fact]) -> None:
        """All numbers move before the first record is written, so that a log that fails or is slow costs none."""
        facts = tuple(facts)
        if len(facts) == 1:
            fact = facts[0]
            for hook, way in self._alone[type(fact)]:
                try:
                    way(fact)
                except Exception as error:  # noqa: BLE001 - see below
                    self._on_error(hook, error)
            return
        for hook, way, takes in self._ways:
            for fact in facts:
                if takes is None or type(fact) in takes:
                    try:
                        way(fact)
                    except Exception as error:  # noqa: BLE001 - one must not cost the others, the log is not ours
                        self._on_error(hook, error)

    def _count(self, fact: Fact) -> None:
        self._metrics.record(fact, _exemplar(fact) if type(fact) in _OF_AN_ATTEMPT else None)

    def _write(self, fact: Fact) -> None:
        self._log(fact, _trace(fact))


def _taken_by(way: object) -> Container[type] | None:
    """The facts that a way does anything with, if it says so: most are for a few only, and each is one more call."""
    return getattr(way, "takes", None)


def _trace(fact: Fact) -> Trace | None:
    """Where the story of a verdict or a breach is told, if a span tells it."""
    if not isinstance(fact, (AttemptSettled, Violated)):
        return None
    context = context_of(fact.node)
    if context is None or not context.is_valid:
        return None
    return {fields.TRACE_ID: format_trace_id(context.trace_id), fields.SPAN_ID: format_span_id(context.span_id)}


def _exemplar(fact: Fact) -> Trace | None:
    """The trace of the attempt, for those who look at the number; one that was not sampled would lead nowhere."""
    if not isinstance(fact, (AttemptSettled, StreamReopened)):
        return None
    node = fact.node if isinstance(fact, AttemptSettled) else fact.attempt
    context = context_of(node)
    if context is None or not context.trace_flags.sampled:
        return None
    return {fields.TRACE_ID: format_trace_id(context.trace_id)}

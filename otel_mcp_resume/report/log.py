"""One structured record per settled attempt and per violation, through whatever logging the application has.

Neither structlog nor the standard library is ever configured here. Where the application has configured structlog,
records are its events. Else, where it has a handler, they are records of the logger `otel_mcp_resume`: one line of
`key=value`, and the same fields as attributes. Where it has neither, what is lost is said on stderr all the same.
"""

from __future__ import annotations

import logging
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from otel_mcp_resume.report import fields
from otel_mcp_resume.report.attributes import of_attempt, of_violation
from otel_mcp_resume.report.ids import Ids
from otel_mcp_resume.rules.terms import Outcome
from otel_mcp_resume.watch.facts import AttemptSettled, Violated

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from otel_mcp_resume.report.attributes import Attributes
    from otel_mcp_resume.settings import Settings
    from otel_mcp_resume.watch.facts import Fact

__all__ = ["Log"]

_LEVELS = {Outcome.GAP: logging.ERROR, Outcome.ABANDONED: logging.ERROR, Outcome.UNPROVEN: logging.WARNING}
_METHODS = {logging.ERROR: "error", logging.WARNING: "warning", logging.DEBUG: "debug"}


class Log:
    """Takes any fact, and writes a record for those that have one. Raises what the application's logging raises."""

    def __init__(self, settings: Settings) -> None:
        self._ids = Ids(settings)
        self.takes: Container[type] = (AttemptSettled, Violated)
        """The facts that have a record."""

    def __call__(self, fact: Fact, trace: Mapping[str, str] | None = None) -> None:
        """`trace` holds `trace_id` and `span_id`, if there is a span that tells the story of `fact`."""
        if isinstance(fact, AttemptSettled):
            level, event = _LEVELS.get(fact.outcome, logging.DEBUG), fields.ATTEMPT_RECORD
        elif isinstance(fact, Violated):
            level, event = logging.ERROR, fields.VIOLATION_RECORD
        else:
            return
        write = _way_out(level)
        if write is not None:
            attributes = (
                of_attempt(fact, self._ids) if isinstance(fact, AttemptSettled) else of_violation(fact, self._ids)
            )
            write(event, {**attributes, **(trace or {})})


def _way_out(level: int) -> Callable[[str, Attributes], None] | None:
    """Where a record of `level` goes now, None if nowhere. Asked each time: logging may be configured at any moment."""
    structlog: Any = sys.modules.get("structlog")  # who has not imported it has not configured it
    is_configured = getattr(structlog, "is_configured", None)  # another thread may be in the middle of importing it
    if is_configured is not None and is_configured():
        return partial(_to_structlog, structlog, level)
    logger = logging.getLogger(fields.LOGGER)
    if logger.hasHandlers():
        return partial(_to_logging, logger, level) if logger.isEnabledFor(level) else None
    return partial(_to_stderr, level) if level >= logging.ERROR else None


def _to_structlog(structlog: Any, level: int, event: str, attributes: Attributes) -> None:
    config = structlog.get_config()
    if (
        config["wrapper_class"] is structlog.stdlib.AsyncBoundLogger
    ):  # wants to be awaited, and facts have no event loop
        logger = config["logger_factory"](fields.LOGGER)
        logger = structlog.wrap_logger(logger, wrapper_class=structlog.stdlib.BoundLogger)
    else:
        logger = structlog.get_logger(fields.LOGGER)
    getattr(logger, _METHODS[level])(event, **attributes)


def _to_logging(logger: logging.Logger, level: int, event: str, attributes: Attributes) -> None:
    record = logger.makeRecord(logger.name, level, __file__, 0, _line(event, attributes), (), None)
    # Not as `extra`: that raises if the application's record factory has set a `trace_id` of its own.
    record.__dict__.update(attributes, event=event)
    logger.handle(record)


def _to_stderr(level: int, event: str, attributes: Attributes) -> None:
    if sys.stderr is not None:
        line = f"{logging.getLevelName(level)} otel-mcp-resume {_line(event, attributes)}\n"
        sys.stderr.write(line)
        sys.stderr.flush()


def _line(event: str, attributes: Attributes) -> str:
    from structlog.processors import LogfmtRenderer  # here, so that a process without records does not pay for it

    return str(LogfmtRenderer()(None, "", {"event": event, **attributes}))

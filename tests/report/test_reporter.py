from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from otel_mcp_resume.report.errors import Errors
from otel_mcp_resume.report.metrics import Metrics
from otel_mcp_resume.report.reporter import Reporter
from otel_mcp_resume.rules.terms import Generation, Side
from otel_mcp_resume.watch.facts import Fact, LedgerEvicted, SessionClosed, SessionOpened

if TYPE_CHECKING:
    from collections.abc import Iterator

OPENED = SessionOpened(Side.CLIENT, Generation.SSE)
CLOSED = SessionClosed(Side.CLIENT, Generation.SSE)


def value(metrics: Metrics, name: str, **labels: str) -> float:
    for family in metrics.collect():
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return sample.value
    raise AssertionError(name)


def test_all_numbers_move_before_the_first_record_is_written() -> None:
    metrics = Metrics()
    seen: list[tuple[Fact, float]] = []

    def log(fact: Fact, trace: object = None) -> None:
        seen.append((fact, value(metrics, "mcp_resume_open_sessions")))

    def facts() -> Iterator[Fact]:
        yield OPENED
        yield OPENED
        yield CLOSED

    Reporter(metrics, log, Errors(metrics.internal_error))(facts())
    assert seen == [(OPENED, 1), (OPENED, 1), (CLOSED, 1)]


def test_a_failing_log_loses_no_number_and_is_counted_each_time() -> None:
    metrics = Metrics()

    def log(fact: Fact, trace: object = None) -> None:
        raise OSError("disk full")

    Reporter(metrics, log, Errors(metrics.internal_error))([OPENED, OPENED])
    assert value(metrics, "mcp_resume_open_sessions") == 2
    assert value(metrics, "mcp_resume_internal_errors_total", hook="report.log") == 2


def test_a_failing_metric_loses_neither_the_others_nor_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics()
    logged: list[Fact] = []
    record = metrics.record

    def fails(fact: Fact, exemplar: object = None) -> None:
        if fact is CLOSED:
            raise OSError("no space left for the files of worker processes")
        record(fact)

    monkeypatch.setattr(metrics, "record", fails)
    Reporter(metrics, lambda fact, _: logged.append(fact), Errors(metrics.internal_error))([OPENED, CLOSED, OPENED])
    assert value(metrics, "mcp_resume_open_sessions") == 2
    assert value(metrics, "mcp_resume_internal_errors_total", hook="report.metrics") == 1
    assert logged == [OPENED, CLOSED, OPENED]


def test_a_fact_that_makes_no_sense_is_a_fault_of_ours_and_harms_nobody() -> None:
    metrics = Metrics()
    logged: list[Fact] = []
    Reporter(metrics, lambda fact, _: logged.append(fact), Errors(metrics.internal_error))(
        [LedgerEvicted(Side.CLIENT, -1), OPENED]
    )
    assert value(metrics, "mcp_resume_open_sessions") == 1
    assert value(metrics, "mcp_resume_internal_errors_total", hook="report.metrics") == 1
    assert len(logged) == 2


def test_cancellation_passes() -> None:
    def log(fact: Fact, trace: object = None) -> None:
        raise KeyboardInterrupt

    metrics = Metrics()
    with pytest.raises(KeyboardInterrupt):
        Reporter(metrics, log, Errors(metrics.internal_error))([OPENED])

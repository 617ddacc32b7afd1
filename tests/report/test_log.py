from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from otel_mcp_resume.report.log import Log
from otel_mcp_resume.rules.terms import Generation, Outcome, Reason, Side, Stream, ViolationRule
from otel_mcp_resume.settings import Settings
from otel_mcp_resume.watch.facts import AttemptSettled, Context, SessionOpened, Violated

if TYPE_CHECKING:
    from collections.abc import Iterator

HTTP = Generation.STREAMABLE_HTTP
LOG = Log(Settings())
LOGGER = "otel_mcp_resume"
VIOLATION = Violated(Side.CLIENT, HTTP, ViolationRule.STALE_SESSION, Stream.REQUEST, context=Context("S1"))
LEVELS = {
    Outcome.PROVEN: "DEBUG",
    Outcome.UNPROVEN: "WARNING",
    Outcome.GAP: "ERROR",
    Outcome.REJECTED: "DEBUG",
    Outcome.FAILED: "DEBUG",
    Outcome.ABANDONED: "ERROR",
}


def attempt(outcome: Outcome = Outcome.GAP, token: str = "4821") -> AttemptSettled:
    return AttemptSettled(
        Side.CLIENT, HTTP, HTTP, Stream.STANDALONE, outcome, Reason.SESSION_CHANGED, 0.1, token=token, events=3
    )


@pytest.fixture
def configured_structlog() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize("outcome", Outcome)
def test_an_attempt_is_one_record_of_its_level_with_every_field(
    outcome: Outcome, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        LOG(attempt(outcome))
    [record] = caplog.records
    assert (record.name, record.levelname) == (LOGGER, LEVELS[outcome])
    fields: Any = record.__dict__
    assert fields["event"] == "mcp_resume.attempt"
    assert fields["mcp.resume.outcome"] == str(outcome)
    assert fields["mcp.resume.token"] == "4821"
    assert fields["mcp.resume.events"] == 3
    assert record.getMessage() == (
        f"event=mcp_resume.attempt mcp.resume.outcome={outcome} mcp.resume.reason=session_changed "
        "mcp.resume.side=client mcp.resume.generation=streamable_http "
        "mcp.resume.previous_generation=streamable_http mcp.resume.stream=standalone "
        "network.transport=tcp mcp.resume.token=4821 mcp.resume.events=3"
    )


def test_a_violation_is_one_record_at_error(caplog: pytest.LogCaptureFixture) -> None:
    LOG(VIOLATION)
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage().startswith("event=mcp_resume.violation mcp.resume.rule=stale_session ")
    assert "mcp.session.id=S1" in record.getMessage()


def test_other_facts_are_silent(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        LOG(SessionOpened(Side.CLIENT, HTTP))
    assert caplog.records == []


def test_the_applications_level_decides(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, LOGGER):
        LOG(attempt(Outcome.UNPROVEN))
        LOG(attempt(Outcome.GAP))
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_a_token_cannot_forge_a_line(caplog: pytest.LogCaptureFixture) -> None:
    LOG(attempt(token='1\nERROR root "forged" x=y\x1b[2J'))
    [record] = caplog.records
    assert record.getMessage().isprintable()
    assert "forged" in record.getMessage()


def test_a_span_is_named_even_where_the_application_sets_such_a_field_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    factory = logging.getLogRecordFactory()

    def with_trace(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = factory(*args, **kwargs)
        record.trace_id = "of the application"
        return record

    logging.setLogRecordFactory(with_trace)
    try:
        LOG(attempt(), {"trace_id": "ab", "span_id": "cd"})
    finally:
        logging.setLogRecordFactory(factory)
    fields: Any = caplog.records[0].__dict__
    assert (fields["trace_id"], fields["span_id"]) == ("ab", "cd")
    assert caplog.records[0].getMessage().endswith("trace_id=ab span_id=cd")


@pytest.mark.parametrize("mode", ["hash", "none"])
def test_identifiers_are_hidden_as_asked(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    log = Log(Settings(ids=mode))
    log(attempt())
    log(VIOLATION)
    assert "4821" not in caplog.text
    assert "S1" not in caplog.text
    assert ("mcp.resume.token=" in caplog.text) == (mode == "hash")


@pytest.mark.usefixtures("configured_structlog")
def test_a_configured_structlog_gets_events_and_nothing_goes_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    sink = io.StringIO()
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer()],
        logger_factory=structlog.PrintLoggerFactory(sink),
    )
    before = structlog.get_config()
    LOG(attempt(), {"trace_id": "ab"})
    LOG(attempt(Outcome.UNPROVEN))
    LOG(VIOLATION)
    events = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert [(event["event"], event["level"]) for event in events] == [
        ("mcp_resume.attempt", "error"),
        ("mcp_resume.attempt", "warning"),
        ("mcp_resume.violation", "error"),
    ]
    assert (events[0]["mcp.resume.token"], events[0]["mcp.resume.events"], events[0]["trace_id"]) == ("4821", 3, "ab")
    assert caplog.records == []
    assert structlog.get_config() == before


@pytest.mark.usefixtures("configured_structlog")
def test_a_filter_of_structlog_is_respected() -> None:
    sink = io.StringIO()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sink),
        processors=[structlog.processors.LogfmtRenderer()],
    )
    LOG(attempt(Outcome.UNPROVEN))
    assert sink.getvalue() == ""
    LOG(attempt(Outcome.ABANDONED))
    assert "abandoned" in sink.getvalue()


@pytest.mark.usefixtures("configured_structlog")
@pytest.mark.parametrize("wrapper", [structlog.stdlib.BoundLogger, structlog.stdlib.AsyncBoundLogger])
def test_structlog_on_top_of_the_standard_library(wrapper: type, caplog: pytest.LogCaptureFixture) -> None:
    structlog.configure(
        processors=[structlog.stdlib.add_logger_name, structlog.stdlib.render_to_log_kwargs],
        wrapper_class=wrapper,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    LOG(attempt())
    [record] = caplog.records
    assert (record.name, record.levelname, record.getMessage()) == (LOGGER, "ERROR", "mcp_resume.attempt")
    assert record.__dict__["mcp.resume.token"] == "4821"


BARE = """
import logging, sys
from otel_mcp_resume.report.log import Log
from otel_mcp_resume.settings import Settings
from otel_mcp_resume.rules.terms import *
from otel_mcp_resume.watch.facts import *
log = Log(Settings())
def attempt(outcome):
    log(AttemptSettled(Side.CLIENT, Generation.SSE, Generation.SSE, Stream.SESSION, outcome, Reason.NO_TOKEN, 0.1,
        token="a\\nb"))
"""


def bare(script: str) -> list[str]:
    run = subprocess.run([sys.executable, "-c", BARE + script], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == ""
    return run.stderr.splitlines()


def test_without_any_logging_what_is_lost_is_one_line_each_on_stderr() -> None:
    lines = bare(
        """
for outcome in Outcome:
    attempt(outcome)
log(Violated(Side.CLIENT, Generation.SSE, ViolationRule.STALE_SESSION))
assert not logging.getLogger().handlers and not logging.getLogger("otel_mcp_resume").handlers
"""
    )
    assert [line.split(" mcp.resume.side")[0] for line in lines] == [
        "ERROR otel-mcp-resume event=mcp_resume.attempt mcp.resume.outcome=gap mcp.resume.reason=no_token",
        "ERROR otel-mcp-resume event=mcp_resume.attempt mcp.resume.outcome=abandoned mcp.resume.reason=no_token",
        "ERROR otel-mcp-resume event=mcp_resume.violation mcp.resume.rule=stale_session",
    ]


def test_structlog_is_not_imported_before_the_first_line() -> None:
    assert (
        bare("assert 'structlog' not in sys.modules\nattempt(Outcome.PROVEN)\nassert 'structlog' not in sys.modules")
        == []
    )


def test_an_application_without_stderr_goes_on() -> None:
    assert bare("sys.stderr = None\nattempt(Outcome.GAP)") == []


def test_logging_that_is_configured_later_is_found_and_does_not_silence_us() -> None:
    lines = bare(
        """
import logging.config
logging.getLogger("otel_mcp_resume.plugin")
logging.config.dictConfig({
    "version": 1,  # and disable_existing_loggers, which is its default
    "handlers": {"h": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["h"], "level": "WARNING"},
})
attempt(Outcome.UNPROVEN)
"""
    )
    assert [line.split(" mcp.resume.side")[0] for line in lines] == [
        "event=mcp_resume.attempt mcp.resume.outcome=unproven mcp.resume.reason=no_token"
    ]


def test_a_structlog_that_is_imported_but_not_configured_does_not_count() -> None:
    assert len(bare("import structlog\nattempt(Outcome.GAP)\nassert not structlog.is_configured()")) == 1


def test_a_structlog_that_another_thread_is_importing_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "structlog", ModuleType("structlog"))
    LOG(attempt())
    assert "mcp.resume.outcome=gap" in caplog.text

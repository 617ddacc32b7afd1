from __future__ import annotations

import logging
import threading

import pytest

from otel_mcp_resume.report.errors import Errors


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def fault() -> ZeroDivisionError:
    try:
        1 / 0  # noqa: B018
    except ZeroDivisionError as error:
        return error
    raise AssertionError


def ignore(hook: str) -> None:
    """Counts nothing."""


def test_every_fault_is_counted_and_one_a_minute_is_logged_with_its_stack(caplog: pytest.LogCaptureFixture) -> None:
    counted: list[str] = []
    clock = Clock()
    errors = Errors(counted.append, clock)
    for second in range(150):
        clock.now = 1000.0 + second
        errors("client.send", fault())
    assert counted == ["client.send"] * 150
    assert [record.getMessage().count("(59 more") for record in caplog.records] == [0, 1, 1]
    assert {(record.name, record.levelno) for record in caplog.records} == {("otel_mcp_resume.plugin", logging.ERROR)}
    assert "client.send" in caplog.records[0].getMessage()
    assert "1 / 0" in caplog.text


def test_it_never_raises(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("disk full")

    def count(hook: str) -> None:
        raise OverflowError(hook)

    logger = logging.getLogger("otel_mcp_resume.plugin")
    broken = Broken()
    logger.addHandler(broken)
    try:
        Errors(count)("client.send", fault())
    finally:
        logger.removeHandler(broken)
    Errors(count)("client.send", fault())
    assert "OverflowError" in caplog.text


def test_cancellation_passes() -> None:
    def count(hook: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Errors(count)("client.send", fault())


def test_a_forked_child_has_a_lock_and_a_minute_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    errors = Errors(ignore)
    errors("client.send", fault())
    errors._lock.acquire()  # held by a thread that the child does not have
    errors.after_fork()
    errors("client.send", fault())
    assert len(caplog.records) == 2


def test_a_fault_in_many_threads_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    errors = Errors(ignore)
    threads = [threading.Thread(target=errors, args=("client.send", fault())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(caplog.records) == 1

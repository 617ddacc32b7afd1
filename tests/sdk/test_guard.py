from __future__ import annotations

import asyncio

import pytest

from otel_mcp_resume.sdk.guard import Guard


class Sink:
    def __init__(self) -> None:
        self.reported: list[tuple[str, Exception]] = []

    def __call__(self, hook: str, error: Exception) -> None:
        self.reported.append((hook, error))


def test_what_works_works() -> None:
    sink = Sink()

    def double(number: int, *, extra: int = 0) -> int:
        return 2 * number + extra

    guarded = Guard(sink)("hook", double)
    assert (guarded(4, extra=1), sink.reported) == (9, [])


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), RecursionError("x"), MemoryError(), StopIteration(), StopAsyncIteration(), OSError(28, "x")],
)
def test_a_fault_is_reported_and_answered_with_none(error: Exception) -> None:
    sink = Sink()

    def fails() -> int:
        raise error

    assert Guard(sink)("hook", fails)() is None
    assert sink.reported == [("hook", error)]


def test_wrong_arguments_are_a_fault_too() -> None:
    sink = Sink()

    def takes_none() -> None:
        return None

    Guard(sink)("hook", takes_none)(1)  # type: ignore[call-arg]
    assert [type(error) for _, error in sink.reported] == [TypeError]


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit(), asyncio.CancelledError(), BaseException("x")]
)
def test_what_is_no_fault_of_ours_passes_untouched(error: BaseException) -> None:
    sink = Sink()

    def interrupted() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        Guard(sink)("hook", interrupted)()
    assert caught.value is error
    assert error.__context__ is None
    assert sink.reported == []


def test_a_report_that_fails_is_the_end_of_it() -> None:
    def report(hook: str, error: Exception) -> None:
        raise OverflowError(hook) from error

    def fails() -> None:
        raise ValueError

    assert Guard(report)("hook", fails)() is None


def test_an_interruption_while_reporting_passes() -> None:
    def report(hook: str, error: Exception) -> None:
        raise KeyboardInterrupt

    def fails() -> None:
        raise ValueError

    with pytest.raises(KeyboardInterrupt):
        Guard(report)("hook", fails)()


def test_too_deep_a_stack_within_us_stays_within_us() -> None:
    sink = Sink()

    def deeper() -> int:
        return deeper() + 1

    assert Guard(sink)("hook", deeper)() is None
    assert [type(error) for _, error in sink.reported] == [RecursionError]


def test_what_was_caught_on_the_spot_is_reported_too() -> None:
    sink, error = Sink(), ValueError("x")
    Guard(sink).fail("hook")(error)
    assert sink.reported == [("hook", error)]

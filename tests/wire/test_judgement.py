"""The runner's own judgement, on literal samples and literal traffic."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from .bounds import Bound
from .cases import Case
from .exchange import Event
from .expectations import check_metrics, expects_absence
from .frames import frame_text
from .machine import reserved_port, start_slot
from .matching import Request, Rule
from .samples import Sample, parse_metrics, total

GAP = {"side": "client", "outcome": "gap", "reason": "session_changed"}
INFO = Sample("mcp_resume_info", {"version": "0"}, 1)


def case(*, healthy: bool = False, **expect: Any) -> Case:
    return Case("some/case", "client", (1, 2), healthy, {"expect": expect})


def problems(what: Case, *samples: Sample) -> list[str]:
    return [problem.text for problem in check_metrics(what, [INFO, *samples])]


def attempts(value: float, **labels: str) -> Sample:
    return Sample("mcp_resume_attempts_total", {**GAP, **labels}, value)


def test_count_left_out_means_at_least_one() -> None:
    assert problems(case(attempts=[{"outcome": "gap"}]))
    assert not problems(case(attempts=[{"outcome": "gap"}]), attempts(2))


def test_too_many_is_final_and_too_few_is_not() -> None:
    exactly_one = case(attempts=[{"outcome": "gap", "count": 1}])
    assert [problem.final for problem in check_metrics(exactly_one, [INFO])] == [False]
    assert [problem.final for problem in check_metrics(exactly_one, [INFO, attempts(2)])] == [True]


def test_label_left_out_matches_every_series() -> None:
    assert total([attempts(1), attempts(2, reason="undelivered")], "mcp_resume_attempts_total", {"outcome": "gap"}) == 3


@pytest.mark.parametrize(
    "alarm",
    [
        attempts(1),
        attempts(1, outcome="unproven"),
        Sample("mcp_resume_violations_total", {"rule": "stale_session"}, 1),
        Sample("mcp_resume_undelivered_events_total", {"cause": "skipped"}, 1),
        Sample("mcp_resume_internal_errors_total", {"hook": "any"}, 1),
    ],
)
def test_healthy_case_bears_no_alarm(alarm: Sample) -> None:
    assert not problems(case(healthy=True), attempts(1, outcome="proven"))
    assert problems(case(healthy=True), alarm)


def test_what_must_stay_away_is_waited_for() -> None:
    assert not expects_absence(case(attempts=[{"outcome": "gap", "count": ">=1"}]))
    assert expects_absence(case(attempts=[{"outcome": "gap", "count": 1}]))
    assert expects_absence(case(no_attempts=[{"outcome": "gap"}]))
    assert expects_absence(case(undelivered=0))
    assert expects_absence(case(healthy=True))


def test_exposition_is_read_with_its_escapes() -> None:
    text = '# HELP a b\na_total{x="1,\\"2\\"",y="z"} 3.0\nb 1e3 1700000000\n'
    assert [(s.name, s.value) for s in parse_metrics(text)] == [("a_total", 3), ("b", 1000)]
    assert parse_metrics(text)[0].labels["y"] == "z"


def test_bounds() -> None:
    assert Bound.parse(">=2").problem("x", 1)
    assert not Bound.parse(">=2").problem("x", 5)
    assert Bound.parse(2).problem("x", 3)


def test_rule_counts_what_earlier_rules_took() -> None:
    rule = Rule({"method": "GET", "headers": {"Last-Event-ID": True}, "nth": "2+"}, {})
    request = Request("GET", "/mcp?x=1", {"last-event-id": "7"}, {})
    other = Request("GET", "/mcp", {}, {})
    assert [rule.takes(each) for each in (request, other, request, request)] == [False, False, True, True]
    assert request.matches({"path": "/mcp", "token": "7", "session": None})


class Speaker:
    """A response that fills in nothing."""

    def answer(self) -> dict[str, Any]:
        return {}

    def filled(self, value: Any) -> Any:
        return value


def test_frames() -> None:
    assert frame_text(Speaker(), {"comment": "c"}) == ": c\n\n"
    assert frame_text(Speaker(), {"id": "", "retry": 5}) == "id: \nretry: 5\n\n"
    assert frame_text(Speaker(), {"id": "91", "size": 4, "data": ""}) == "id: 9991\ndata: \n\n"
    assert frame_text(Speaker(), {"id": 2, "note": "half", "cut": 6}) == "id: 2\n"


def test_event_has_only_what_was_on_the_wire() -> None:
    event = Event.parse('data: {"id": 1,\ndata: "result": {}}')
    assert (event.id, event.is_response, event.rpc) == (None, True, {"id": 1, "result": {}})
    assert not Event.parse("id: 7\ndata: ").is_message


def test_port_is_held_by_one_run_only() -> None:
    with reserved_port() as one, reserved_port() as other:
        assert one != other


def test_start_slots_are_given_back() -> None:
    async def one_after_the_other() -> None:
        for _ in range(20):
            async with start_slot():
                pass

    asyncio.run(asyncio.wait_for(one_after_the_other(), 60))

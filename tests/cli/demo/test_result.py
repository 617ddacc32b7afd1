from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from otel_mcp_resume.cli.demo.findings import UNDELIVERED, Finding
from otel_mcp_resume.cli.demo.result import Result
from otel_mcp_resume.cli.demo.scenes import SCENES, Scene, Wanted

ATTEMPTS = "mcp_resume_attempts_total"
GAP = Finding("client", ATTEMPTS, "request", ("gap", "session_changed"))
PROVEN = Finding("client", ATTEMPTS, "request", ("proven", "replayed_event"))
LOST = Finding("server", UNDELIVERED, "standalone", ("skipped",))


async def nothing_happens(_: object) -> None: ...


def scene(*wanted: Wanted, alone: bool = False) -> Scene:
    return Scene("s", "a story", "export", nothing_happens, wanted, alone=alone)


def test_what_is_wanted_is_found_among_other_verdicts() -> None:
    result = Result(scene(Wanted("client", ("gap", "session_changed"), "request")), counts=Counter({GAP: 2, LOST: 1}))
    assert result.as_wanted
    assert result.verdict == "client: gap, session_changed"


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted("server", ("gap", "session_changed"), "request"),
        Wanted("client", ("gap", "session_changed"), "standalone"),
        Wanted("client", ("gap", "undelivered"), "request"),
    ],
)
def test_a_verdict_of_another_process_stream_or_reason_is_not_it(wanted: Wanted) -> None:
    result = Result(scene(wanted), counts=Counter({GAP: 1}))
    assert not result.as_wanted
    assert result.verdict == f"wanted {wanted}, got client: gap, session_changed"


def test_no_verdict_at_all_is_said_so() -> None:
    assert Result(scene(Wanted("client", ("gap", "undelivered")))).verdict.endswith("got nothing")


def test_where_a_verdict_stands_alone_nothing_else_may_be_in_doubt() -> None:
    wanted = Wanted("client", ("proven", "replayed_event"))
    assert Result(scene(wanted, alone=True), counts=Counter({PROVEN: 1})).as_wanted
    assert not Result(scene(wanted, alone=True), counts=Counter({PROVEN: 1, GAP: 1})).as_wanted
    lost = Wanted("client", ("gap", "session_changed"))
    assert Result(scene(lost, alone=True), counts=Counter({PROVEN: 1, GAP: 1})).as_wanted
    assert not Result(scene(lost, alone=True), counts=Counter({GAP: 1, LOST: 1})).as_wanted
    assert Result(scene(wanted), counts=Counter({PROVEN: 1, GAP: 1})).as_wanted


def test_a_token_of_another_generation_makes_it_another_verdict() -> None:
    moved = replace(GAP, came_from="sse")
    wanted = Wanted("client", ("gap", "session_changed"), came_from="sse")
    assert Result(scene(wanted), counts=Counter({moved: 1})).as_wanted
    assert not Result(scene(wanted), counts=Counter({GAP: 1})).as_wanted
    assert not Result(scene(replace(wanted, came_from="")), counts=Counter({moved: 1})).as_wanted
    assert Result(scene(wanted), counts=Counter({moved: 1})).verdict.endswith("with a token of sse")


@pytest.mark.parametrize(("lost", "as_wanted"), [(3, True), (2, False)])
def test_the_server_must_count_as_many_as_the_application_misses(lost: int, *, as_wanted: bool) -> None:
    wanted = Wanted("server", ("skipped",), "standalone", figure="missing")
    result = Result(scene(wanted), figures={"missing": 3}, counts=Counter({LOST: lost}))
    assert result.as_wanted is as_wanted
    assert f"server: undelivered, skipped ({lost})" in result.verdict


def test_trouble_is_never_as_wanted() -> None:
    result = Result(scene(), trouble="it broke")
    assert not result.as_wanted
    assert "it broke" in result.verdict
    assert result.noticed == "not played to its end"


def test_the_first_alarm_is_what_the_application_noticed() -> None:
    result = Result(scene(), saw="the call failed", alarms=["McpError: gone", "WARNING httpx: hm"])
    assert result.noticed == "McpError: gone and 1 more (the call failed)"
    assert Result(scene(), saw="all is well").noticed == "nothing (all is well)"


def test_every_scene_wants_something_of_processes_that_it_has() -> None:
    assert len({scene.name for scene in SCENES}) == len(SCENES)
    for each in SCENES:
        assert {wanted.process for wanted in each.wanted} <= {"client", *each.servers}
        assert each.wanted

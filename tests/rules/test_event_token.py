"""Event ids: where they are valid, and what else is refused."""

from __future__ import annotations

from itertools import pairwise

import pytest

from otel_mcp_resume.rules.boundary import (
    ResumptionBoundaryError,
    ResumptionProblem,
    StreamEventLog,
    handle_reconnect,
)
from otel_mcp_resume.rules.event_id import compare_event_ids


@pytest.fixture
def log() -> StreamEventLog[str]:
    log = StreamEventLog[str]()
    log.register_session("S1")
    log.register_session("S2")
    return log


def refusal(log: StreamEventLog[str], session_id: str | None, token: str | None) -> ResumptionBoundaryError:
    before = log.stats()
    with pytest.raises(ResumptionBoundaryError) as caught:
        handle_reconnect(log, session_id, token)
    assert log.stats() == before
    return caught.value


@pytest.mark.parametrize("change", [lambda t: t[:-1] + "3", lambda t: t[:-1] + "9", lambda t: t.replace(":1:", ":2:")])
def test_a_token_never_issued_is_unknown(log: StreamEventLog[str], change: object) -> None:
    assert callable(change)
    log.append("S1", "a", "1")
    error = refusal(log, "S1", change(log.append("S1", "a", "2")))
    assert (error.problem, error.status) == (ResumptionProblem.UNKNOWN_TOKEN, 400)
    assert "never issued" in str(error)


@pytest.mark.parametrize(
    "token",
    ["5", "_GET_stream_13", "f948030c-8159-4d3a-9a6f-000000000000", "a" * 70_000, "\u0661", ":", " ", "x:1:1", "\0"],
)
def test_ids_of_other_servers_are_unknown(log: StreamEventLog[str], token: str) -> None:
    log.append("S1", "a", "1")
    assert refusal(log, "S1", token).problem is ResumptionProblem.UNKNOWN_TOKEN


@pytest.mark.parametrize("form", ["{} ", " {}", "{}\n", "{}:", "{}x", "{}\u0661"])
def test_there_is_one_way_to_write_a_token(log: StreamEventLog[str], form: str) -> None:
    token = log.append("S1", "a", "1")
    assert refusal(log, "S1", form.format(token)).problem is ResumptionProblem.UNKNOWN_TOKEN
    tag, ordinal, number = token.split(":")
    for written in (f"{tag}:0{ordinal}:{number}", f"{tag}:{ordinal}:0{number}", f"{tag}:{ordinal}:-{number}"):
        assert refusal(log, "S1", written).problem is ResumptionProblem.UNKNOWN_TOKEN


def test_a_token_of_before_a_restart_is_unknown(log: StreamEventLog[str]) -> None:
    restarted = StreamEventLog[str]()
    restarted.register_session("S1")
    token = log.append("S1", "a", "1")
    restarted.append("S1", "a", "1")
    assert refusal(restarted, "S1", token).problem is ResumptionProblem.UNKNOWN_TOKEN
    log.unregister_session("S1")
    log.register_session("S1")
    log.append("S1", "a", "1")
    assert refusal(log, "S1", token).problem is ResumptionProblem.UNKNOWN_TOKEN


def test_ids_are_visible_ascii_comparable_within_a_stream_and_only_there(log: StreamEventLog[str]) -> None:
    start = log.open_stream("S1", "a")
    ids = [start] + [log.append("S1", "a", str(n)) for n in range(12)]
    assert all("\x21" <= character <= "\x7e" for event_id in ids for character in event_id)
    assert all(len(event_id) <= 56 for event_id in ids)
    for earlier, later in pairwise(ids):
        assert compare_event_ids(earlier, later) == -1
    assert compare_event_ids(ids[1], log.append("S1", "b", "1")) is None
    assert compare_event_ids(ids[1], log.append("S2", "a", "1")) is None


def test_the_same_stream_name_in_two_sessions_gives_different_ids(log: StreamEventLog[str]) -> None:
    assert log.append("S1", "_GET_stream", "1") != log.append("S2", "_GET_stream", "1")

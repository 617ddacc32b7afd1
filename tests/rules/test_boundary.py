"""The five rows of the decision boundary, and every way to be refused."""

from __future__ import annotations

import doctest
import pickle

import pytest

import otel_mcp_resume
from otel_mcp_resume.rules import boundary
from otel_mcp_resume.rules.boundary import (
    ResumptionBoundaryError,
    ResumptionKind,
    ResumptionProblem,
    StreamEventLog,
    handle_reconnect,
)


@pytest.fixture
def log() -> StreamEventLog[str]:
    log = StreamEventLog[str]()
    log.register_session("S1")
    log.register_session("S2")
    return log


def payloads(log: StreamEventLog[str], session_id: str | None, token: str | None) -> list[str]:
    return [event.payload for event in handle_reconnect(log, session_id, token).events]


def refusal(log: StreamEventLog[str], session_id: str | None, token: str | None) -> ResumptionBoundaryError:
    before = log.stats()
    with pytest.raises(ResumptionBoundaryError) as caught:
        handle_reconnect(log, session_id, token)
    assert log.stats() == before
    return caught.value


def test_the_example_in_the_documentation_works() -> None:
    failed, attempted = doctest.testmod(boundary)
    assert failed == 0
    assert attempted > 10


def test_the_package_exports_what_a_server_needs() -> None:
    for name in ("ResumptionBoundaryError", "StreamEventLog", "handle_reconnect"):
        assert getattr(otel_mcp_resume, name) is getattr(boundary, name)
        assert name in otel_mcp_resume.__all__


def test_a_token_of_the_session_resumes_its_stream_and_brings_what_follows() -> None:
    log = StreamEventLog[dict[str, int]]()
    log.register_session("S1")
    ids = [log.append("S1", "request:7", {"n": n}) for n in range(4)]
    resumption = handle_reconnect(log, "S1", ids[1])
    assert resumption.kind is ResumptionKind.STREAM
    assert (resumption.session_id, resumption.stream, resumption.start) == ("S1", "request:7", ids[1])
    assert [(event.event_id, event.payload) for event in resumption.events] == [(ids[2], {"n": 2}), (ids[3], {"n": 3})]
    assert resumption.position == ids[3]
    assert not resumption.finished


def test_a_token_at_the_end_brings_nothing_and_stays_where_it_is(log: StreamEventLog[str]) -> None:
    newest = log.append("S1", "a", "1")
    resumption = handle_reconnect(log, "S1", newest)
    assert resumption.events == ()
    assert resumption.position == newest


def test_only_the_stream_of_the_token_is_replayed(log: StreamEventLog[str]) -> None:
    token = log.append("S1", "a", "a1")
    log.append("S1", "b", "b1")
    log.append("S2", "a", "another session's")
    log.append("S1", "a", "a2")
    assert payloads(log, "S1", token) == ["a2"]


def test_the_same_token_may_come_twice(log: StreamEventLog[str]) -> None:
    token = log.append("S1", "a", "1")
    log.append("S1", "a", "2")
    assert handle_reconnect(log, "S1", token) == handle_reconnect(log, "S1", token)


def test_a_stream_resumption_touches_no_session_state(log: StreamEventLog[str]) -> None:
    token = log.append("S1", "a", "1")
    log.queue_server_request("S1", 1, "asked")
    before = log.stats()
    assert payloads(log, "S1", token) == []
    assert log.stats() == before
    assert payloads(log, "S1", None) == ["asked"]


def test_a_priming_id_stands_before_the_first_event(log: StreamEventLog[str]) -> None:
    priming = log.open_stream("S1", "request:7")
    log.append("S1", "request:7", "1")
    assert payloads(log, "S1", priming) == ["1"]


def test_a_finished_stream_says_so(log: StreamEventLog[str]) -> None:
    priming = log.open_stream("S1", "request:7")
    assert not handle_reconnect(log, "S1", priming).finished
    log.append("S1", "request:7", "result", last=True)
    assert handle_reconnect(log, "S1", priming).finished
    with pytest.raises(ValueError, match="last event"):
        log.append("S1", "request:7", "one more")
    with pytest.raises(ValueError, match="last event"):
        log.queue_server_request("S1", 1, "asked", stream="request:7")
    assert log.stats().pending == 0


@pytest.mark.parametrize("absent", [None, ""])
def test_no_token_resumes_the_session_on_a_fresh_stream_and_replays_nothing(
    log: StreamEventLog[str], absent: str | None
) -> None:
    log.append("S1", "a", "old")
    log.queue_server_request("S1", 1, "asked")
    resumption = handle_reconnect(log, "S1", absent)
    assert resumption.kind is ResumptionKind.SESSION
    assert [event.payload for event in resumption.events] == ["asked"]
    assert resumption.stream.startswith("~")
    assert not resumption.finished
    log.append("S1", resumption.stream, "live")
    assert payloads(log, "S1", resumption.start) == ["asked", "live"]
    assert payloads(log, "S1", resumption.position) == ["live"]


def test_each_session_resumption_opens_another_stream(log: StreamEventLog[str]) -> None:
    first, second = handle_reconnect(log, "S1", None), handle_reconnect(log, "S1", None)
    assert first.stream != second.stream
    assert first.start != second.start


@pytest.mark.parametrize("absent", [None, ""])
def test_no_session_and_no_token_requires_initialize(log: StreamEventLog[str], absent: str | None) -> None:
    error = refusal(log, absent, absent)
    assert (error.problem, error.status) == (ResumptionProblem.NO_SESSION, 400)
    assert "initialize" in str(error)


@pytest.mark.parametrize("absent", [None, ""])
def test_a_token_without_a_session_is_an_orphan(log: StreamEventLog[str], absent: str | None) -> None:
    token = log.append("S1", "a", "1")
    error = refusal(log, absent, token)
    assert (error.problem, error.status) == (ResumptionProblem.ORPHAN_TOKEN, 400)
    assert error.last_event_id == token
    assert "without a session" in str(error)


@pytest.mark.parametrize("with_token", [True, False])
def test_an_unknown_session_is_not_found(log: StreamEventLog[str], *, with_token: bool) -> None:
    token = log.append("S1", "a", "1") if with_token else None
    error = refusal(log, "S3", token)
    assert (error.problem, error.status, error.session_id) == (ResumptionProblem.UNKNOWN_SESSION, 404, "S3")
    assert error.last_event_id == token
    assert "404" in str(error)


def test_a_session_that_ended_is_unknown(log: StreamEventLog[str]) -> None:
    token = log.append("S1", "a", "1")
    assert log.unregister_session("S1")
    assert not log.unregister_session("S1")
    assert refusal(log, "S1", token).problem is ResumptionProblem.UNKNOWN_SESSION


def test_a_token_of_another_session_is_refused_as_such(log: StreamEventLog[str]) -> None:
    token = log.append("S1", "a", "1")
    log.append("S2", "a", "2")
    error = refusal(log, "S2", token)
    assert (error.problem, error.status) == (ResumptionProblem.FOREIGN_SESSION_TOKEN, 400)
    assert "another session" in str(error)


def test_a_token_of_another_stream_is_refused_if_the_stream_is_named(log: StreamEventLog[str]) -> None:
    token = log.append("S1", "a", "1")
    log.append("S1", "b", "2")
    with pytest.raises(ResumptionBoundaryError, match="another stream") as caught:
        handle_reconnect(log, "S1", token, stream="b")
    assert (caught.value.problem, caught.value.status) == (ResumptionProblem.FOREIGN_STREAM_TOKEN, 400)
    assert handle_reconnect(log, "S1", token, stream="a").stream == "a"


def test_an_error_can_be_sent_and_logged_and_pickled(log: StreamEventLog[str]) -> None:
    token = log.append("S1", "a", "1")
    error = refusal(log, "S2", token)
    assert error.as_json_rpc() == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32000, "message": str(error), "data": {"problem": "foreign_session_token"}},
    }
    assert token not in str(error)
    assert isinstance(error, RuntimeError)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.problem, copy.session_id, copy.last_event_id) == (error.problem, "S2", token)


def test_every_problem_has_a_message_of_its_own_that_names_its_status() -> None:
    errors = [ResumptionBoundaryError(problem) for problem in ResumptionProblem]
    assert len({str(error) for error in errors}) == len(errors)
    assert all(f"answer {error.status}" in str(error) for error in errors)

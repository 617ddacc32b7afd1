"""The log: server requests that wait for an answer, names, and threads."""

from __future__ import annotations

import threading

import pytest

from otel_mcp_resume.rules.boundary import LogStats, ResumptionBoundaryError, ResumptionProblem, StreamEventLog


def log_of(**limits: int) -> StreamEventLog[str]:
    log = StreamEventLog[str](**limits)
    log.register_session("S1")
    return log


def payloads(log: StreamEventLog[str], session_id: str, token: str | None) -> list[str]:
    return [event.payload for event in log.resume(session_id, token).events]


def problem(log: StreamEventLog[str], session_id: str, token: str) -> ResumptionProblem:
    with pytest.raises(ResumptionBoundaryError) as caught:
        log.resume(session_id, token)
    return caught.value.problem


def test_a_request_on_a_stream_is_an_event_of_it() -> None:
    log = log_of()
    before = log.append("S1", "a", "1")
    asked = log.queue_server_request("S1", 1, "asked", stream="a")
    assert asked is not None
    log.append("S1", "a", "2")
    assert payloads(log, "S1", before) == ["asked", "2"]
    assert payloads(log, "S1", asked) == ["2"]


def test_an_answered_request_never_comes_again() -> None:
    log = log_of()
    before = log.append("S1", "a", "1")
    log.queue_server_request("S1", "x", "asked", stream="a")
    log.append("S1", "a", "2")
    assert log.mark_answered("S1", "x")
    assert not log.mark_answered("S1", "x")
    assert payloads(log, "S1", before) == ["2"]
    assert payloads(log, "S1", None) == []


def test_json_rpc_ids_are_the_same_as_number_and_as_text() -> None:
    log = log_of()
    log.queue_server_request("S1", 1, "asked")
    with pytest.raises(ValueError, match="unanswered"):
        log.queue_server_request("S1", "1", "asked again")
    assert log.mark_answered("S1", "1")


def test_a_request_moves_to_the_fresh_stream_and_leaves_the_old_one() -> None:
    log = log_of()
    before = log.append("S1", "a", "1")
    log.queue_server_request("S1", 1, "asked", stream="a")
    fresh = log.resume("S1")
    assert [event.payload for event in fresh.events] == ["asked"]
    assert payloads(log, "S1", before) == []
    assert payloads(log, "S1", fresh.start) == ["asked"]
    assert payloads(log, "S1", fresh.position) == []


def test_an_id_used_again_after_the_answer_is_another_request() -> None:
    log = log_of()
    before = log.append("S1", "a", "1")
    log.queue_server_request("S1", 1, "first", stream="a")
    log.mark_answered("S1", 1)
    log.queue_server_request("S1", 1, "second", stream="a")
    assert payloads(log, "S1", before) == ["second"]


def test_requests_come_again_in_the_order_in_which_they_were_asked() -> None:
    log = log_of()
    log.queue_server_request("S1", 3, "first")
    log.queue_server_request("S1", 1, "second", stream="a")
    log.queue_server_request("S1", 2, "third")
    assert payloads(log, "S1", None) == ["first", "second", "third"]
    assert payloads(log, "S1", None) == ["first", "second", "third"]


def test_a_request_on_a_connected_stream_stays_there() -> None:
    log = log_of()
    before = log.append("S1", "a", "1")
    log.queue_server_request("S1", 1, "on a", stream="a")
    log.queue_server_request("S1", 2, "on b", stream="b")
    log.queue_server_request("S1", 3, "on none")
    fresh = log.resume("S1", connected=["a", "never heard of"])
    assert [event.payload for event in fresh.events] == ["on b", "on none"]
    assert payloads(log, "S1", before) == ["on a"]


def test_queued_requests_are_delivered_once_on_a_live_stream() -> None:
    log = log_of()
    token = log.append("S1", "a", "1")
    log.queue_server_request("S1", 1, "carried", stream="b")
    log.queue_server_request("S1", 2, "queued")
    delivered = log.deliver_queued("S1", "a")
    assert [event.payload for event in delivered] == ["queued"]
    assert log.deliver_queued("S1", "a") == ()
    assert log.resume("S1", token).events == delivered
    assert payloads(log, "S1", delivered[0].event_id) == []


def test_nothing_queued_opens_no_stream() -> None:
    log = log_of()
    assert log.deliver_queued("S1", "a") == ()
    assert log.stats().streams == 0


def test_requests_of_one_session_stay_in_it() -> None:
    log = log_of()
    log.register_session("S2")
    log.queue_server_request("S1", 1, "asked")
    assert payloads(log, "S2", None) == []
    assert not log.mark_answered("S2", 1)
    assert payloads(log, "S1", None) == ["asked"]


def test_a_request_whose_stream_is_gone_comes_with_the_session() -> None:
    log = log_of()
    log.queue_server_request("S1", 1, "asked", stream="a")
    log.close_stream("S1", "a")
    assert log.deliver_queued("S1", "b") == ()  # it may have been delivered
    assert payloads(log, "S1", None) == ["asked"]


def test_other_requests_are_checked_too() -> None:
    log = log_of()
    log.check_session("S1")
    with pytest.raises(ResumptionBoundaryError) as caught:
        log.check_session(None)
    assert caught.value.problem is ResumptionProblem.NO_SESSION
    with pytest.raises(ResumptionBoundaryError) as caught:
        log.check_session("S2")
    assert caught.value.problem is ResumptionProblem.UNKNOWN_SESSION


def test_every_call_that_names_an_unknown_session_is_refused() -> None:
    log = StreamEventLog[str]()
    for call in (
        lambda: log.append("S1", "a", "1"),
        lambda: log.open_stream("S1", "a"),
        lambda: log.close_stream("S1", "a"),
        lambda: log.queue_server_request("S1", 1, "asked"),
        lambda: log.deliver_queued("S1", "a"),
        lambda: log.mark_answered("S1", 1),
        lambda: log.resume("S1"),
    ):
        with pytest.raises(ResumptionBoundaryError) as caught:
            call()
        assert caught.value.problem is ResumptionProblem.UNKNOWN_SESSION
    assert log.stats() == LogStats(0, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("session_id", ["", "a b", "S\u00e9", "S\n", "\x7f"])
def test_a_session_id_is_visible_ascii(session_id: str) -> None:
    with pytest.raises(ValueError, match="visible ASCII"):
        StreamEventLog[str]().register_session(session_id)


def test_a_session_is_registered_once_and_a_stream_opened_once() -> None:
    log = log_of()
    with pytest.raises(ValueError, match="already"):
        log.register_session("S1")
    log.open_stream("S1", "a")
    with pytest.raises(ValueError, match="already"):
        log.open_stream("S1", "a")


@pytest.mark.parametrize("name", ["", "~1"])
def test_some_stream_names_are_not_the_callers_to_give(name: str) -> None:
    log = log_of()
    with pytest.raises(ValueError, match="name"):
        log.open_stream("S1", name)
    with pytest.raises((ValueError, ResumptionBoundaryError)):
        log.append("S1", name, "1")
    assert log.stats().streams == 0


def test_a_closed_log_knows_nobody_and_can_begin_again() -> None:
    log = log_of()
    token = log.append("S1", "a", "1")
    log.close()
    assert problem(log, "S1", token) is ResumptionProblem.UNKNOWN_SESSION
    log.register_session("S1")
    assert problem(log, "S1", token) is ResumptionProblem.UNKNOWN_TOKEN


def test_threads_may_share_a_log() -> None:
    log = StreamEventLog[int](max_events=5_000, max_events_per_session=1_000)
    sessions = [f"S{n}" for n in range(4)]
    for session_id in sessions:
        log.register_session(session_id)
    seen: dict[str, list[int]] = {session_id: [] for session_id in sessions}
    appended = {session_id: threading.Event() for session_id in sessions}

    def write(session_id: str) -> None:
        for n in range(500):
            log.append(session_id, "a", n, last=n == 499)
            appended[session_id].set()

    def read(session_id: str, position: str) -> None:
        finished = False
        while not finished and appended[session_id].wait(30):
            appended[session_id].clear()
            resumption = log.resume(session_id, position)
            seen[session_id] += [event.payload for event in resumption.events]
            position, finished = resumption.position, resumption.finished

    starts = {session_id: log.open_stream(session_id, "a") for session_id in sessions}
    threads = [threading.Thread(target=write, args=(session_id,)) for session_id in sessions]
    threads += [threading.Thread(target=read, args=item) for item in starts.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(seen[session_id] == list(range(500)) for session_id in sessions)

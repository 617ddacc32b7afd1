"""Limits: what goes first, what a token is worth afterwards, and what is given back."""

from __future__ import annotations

import gc
import weakref

import pytest

from otel_mcp_resume.rules.boundary import (
    LogStats,
    PendingRequestLimitError,
    ResumptionBoundaryError,
    ResumptionProblem,
    StreamEventLog,
)


class Payload:
    """Something that a weak reference can watch."""


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


def test_too_many_unanswered_requests_are_refused_and_none_is_dropped() -> None:
    log = log_of(max_pending_per_session=2)
    log.queue_server_request("S1", 1, "first")
    log.queue_server_request("S1", 2, "second")
    with pytest.raises(PendingRequestLimitError):
        log.queue_server_request("S1", 3, "third", stream="a")
    assert log.stats().streams == 0
    assert payloads(log, "S1", None) == ["first", "second"]
    log.mark_answered("S1", 1)
    log.queue_server_request("S1", 3, "third")


def test_the_oldest_event_of_a_session_goes_first_and_a_token_is_good_while_all_behind_it_is_there() -> None:
    log = log_of(max_events_per_session=3)
    ids = [log.append("S1", "a", str(n)) for n in range(1, 4)]
    priming = ids[0].rsplit(":", 1)[0] + ":0"
    assert payloads(log, "S1", priming) == ["1", "2", "3"]
    ids.append(log.append("S1", "a", "4"))  # evicts 1
    assert problem(log, "S1", priming) is ResumptionProblem.EVICTED
    assert payloads(log, "S1", ids[0]) == ["2", "3", "4"]
    log.append("S1", "a", "5")  # evicts 2
    assert problem(log, "S1", ids[0]) is ResumptionProblem.EVICTED
    assert payloads(log, "S1", ids[1]) == ["3", "4", "5"]
    assert log.stats().evicted_events == 2


def test_eviction_in_a_session_crosses_its_streams_in_order_of_age() -> None:
    log = log_of(max_events_per_session=2)
    a, b = log.open_stream("S1", "a"), log.open_stream("S1", "b")
    log.append("S1", "a", "a1")
    log.append("S1", "b", "b1")
    log.append("S1", "b", "b2")  # evicts a1
    assert problem(log, "S1", a) is ResumptionProblem.EVICTED
    assert payloads(log, "S1", b) == ["b1", "b2"]
    log.append("S1", "a", "a2")  # evicts b1
    assert problem(log, "S1", b) is ResumptionProblem.EVICTED


def test_a_busy_session_does_not_evict_the_events_of_another() -> None:
    log = log_of(max_events_per_session=2, max_events=100)
    log.register_session("S2")
    token = log.append("S1", "a", "1")
    log.append("S1", "a", "2")
    for n in range(50):
        log.append("S2", "a", str(n))
    assert payloads(log, "S1", token) == ["2"]
    assert log.stats().events == 4


def test_the_oldest_event_of_all_goes_first_when_the_log_is_full() -> None:
    log = log_of(max_events=2)
    log.register_session("S2")
    start = log.open_stream("S1", "a")
    first = log.append("S1", "a", "1")
    log.append("S2", "a", "2")
    third = log.append("S2", "a", "3")  # evicts 1, of another session
    assert problem(log, "S1", start) is ResumptionProblem.EVICTED
    assert payloads(log, "S1", first) == []
    assert payloads(log, "S2", third) == []
    assert log.stats() == LogStats(2, 2, 2, 0, 0, 0, 1)


@pytest.mark.parametrize("limit", ["max_streams", "max_streams_per_session"])
def test_the_stream_unused_for_the_longest_time_goes_first(limit: str) -> None:
    log = log_of(**{limit: 2})
    a = log.append("S1", "a", "1")
    b = log.append("S1", "b", "1")
    log.resume("S1", a)  # uses a
    c = log.append("S1", "c", "1")  # evicts b
    assert problem(log, "S1", b) is ResumptionProblem.EVICTED
    log.append("S1", "a", "2")  # uses a
    log.append("S1", "d", "1")  # evicts c
    assert problem(log, "S1", c) is ResumptionProblem.EVICTED
    assert payloads(log, "S1", a) == ["2"]
    stats = log.stats()
    assert (stats.streams, stats.events, stats.evicted_streams, stats.evicted_events) == (2, 3, 2, 2)


def test_a_stream_opened_again_under_its_name_does_not_take_the_tokens_of_the_old_one() -> None:
    log = log_of()
    old = log.append("S1", "a", "1")
    assert log.close_stream("S1", "a")
    assert not log.close_stream("S1", "a")
    assert log.stats().events == 0
    new = log.append("S1", "a", "2")
    assert problem(log, "S1", old) is ResumptionProblem.EVICTED
    assert old != new


def test_a_fresh_stream_that_is_gone_stays_gone() -> None:
    log = log_of(max_streams_per_session=1)
    stream = log.resume("S1").stream
    log.append("S1", "a", "1")
    with pytest.raises(ResumptionBoundaryError) as caught:
        log.append("S1", stream, "2")
    assert caught.value.problem is ResumptionProblem.EVICTED


def test_requests_evicted_from_the_log_are_delivered_all_the_same() -> None:
    log = log_of(max_events_per_session=1)
    for n in range(3):
        log.queue_server_request("S1", n, f"asked {n}")
    fresh = log.resume("S1")
    assert [event.payload for event in fresh.events] == ["asked 0", "asked 1", "asked 2"]
    assert problem(log, "S1", fresh.start) is ResumptionProblem.EVICTED
    assert payloads(log, "S1", fresh.events[1].event_id) == ["asked 2"]


@pytest.mark.parametrize("use", ["append", "resume", "check"])
def test_the_session_unused_for_the_longest_time_goes_first(use: str) -> None:
    log = log_of(max_sessions=2)
    log.register_session("S2")
    token = log.append("S2", "a", "1")
    if use == "append":
        log.append("S1", "a", "1")
    elif use == "resume":
        log.resume("S1")
    else:
        log.check_session("S1")
    log.register_session("S3")
    assert problem(log, "S2", token) is ResumptionProblem.UNKNOWN_SESSION
    log.check_session("S1")
    stats = log.stats()
    assert (stats.sessions, stats.evicted_sessions) == (2, 1)


@pytest.mark.parametrize(
    "limit",
    [
        "max_sessions",
        "max_streams",
        "max_streams_per_session",
        "max_events",
        "max_events_per_session",
        "max_pending_per_session",
    ],
)
def test_a_limit_is_at_least_one(limit: str) -> None:
    with pytest.raises(ValueError, match=limit):
        StreamEventLog[str](**{limit: 0})
    StreamEventLog[str](**{limit: 1})


@pytest.mark.parametrize("end", ["unregister", "evict", "close"])
def test_the_end_of_a_session_gives_everything_back_at_once(end: str) -> None:
    log = StreamEventLog[Payload](max_sessions=1)
    log.register_session("S1")
    payload = Payload()
    watched = weakref.ref(payload)
    log.append("S1", "a", payload)
    log.queue_server_request("S1", 1, payload, stream="a")
    log.queue_server_request("S1", 2, payload)
    log.resume("S1")
    del payload
    gc.disable()  # reference counts alone must do it
    try:
        if end == "unregister":
            log.unregister_session("S1")
        elif end == "evict":
            log.register_session("S2")
        else:
            log.close()
        assert watched() is None
    finally:
        gc.enable()
    stats = log.stats()
    assert (stats.streams, stats.events, stats.pending) == (0, 0, 0)

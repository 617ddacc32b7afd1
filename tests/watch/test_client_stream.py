"""How streams open, open again, and are given up."""

from __future__ import annotations

from typing import Any

import pytest

from otel_mcp_resume.rules.terms import Disconnect, Generation, Stream
from otel_mcp_resume.watch.exchange import ResponseHead
from otel_mcp_resume.watch.facts import AttemptBegun, AttemptSettled, StreamClosed, StreamOpened, StreamReopened
from tests.watch.client_play import Line, Play, message, response

HTTP = Generation.STREAMABLE_HTTP
REQUEST: dict[str, Any] = {"kind": Stream.REQUEST, "method": "tools/call", "request_id": "7"}


def cut_line(play: Play, **known: Any) -> Line:
    """A stream that was open, has received event 5 under S1, and was cut."""
    return play.line(**known).open(named="S1").event(5, message("a")).end()


def test_the_first_opening_is_no_attempt() -> None:
    play = Play()
    play.line().open(named="S1").event(1, message("a"))
    assert (play.verdicts, len(play.of(StreamOpened)), play.of(AttemptBegun)) == ([], 1, [])
    assert play.counted == {(HTTP, Stream.STANDALONE): 1}


@pytest.mark.parametrize("status", [400, 404, 405, 500, None])
def test_nor_is_a_first_opening_that_fails(status: int | None) -> None:
    play = Play()
    play.line().open(status=status, event_stream=False)
    assert play.facts == []


@pytest.mark.parametrize(
    ("status", "event_stream", "verdict"),
    [
        (None, False, "failed: network_error"),
        (500, False, "failed: server_error"),
        (502, True, "failed: server_error"),
        (200, False, "failed: not_event_stream"),
        (202, False, "failed: not_event_stream"),
        (307, False, "failed: not_event_stream"),
        (400, False, "rejected: bad_request"),
        (401, False, "rejected: unauthorized"),
        (403, False, "rejected: unauthorized"),
        (404, False, "rejected: session_not_found"),
        (405, False, "rejected: not_supported"),
        (409, False, "rejected: stream_conflict"),
        (410, False, "rejected: other_4xx"),
        (429, False, "rejected: other_4xx"),
    ],
)
@pytest.mark.parametrize("known", [{}, REQUEST], ids=["standalone", "request"])
@pytest.mark.parametrize("token", [None, "5"])
def test_a_head_that_settles_an_attempt(
    status: int | None, verdict: str, known: dict[str, Any], token: str | None, *, event_stream: bool
) -> None:
    play = Play()
    cut_line(play, **known).open(token, status=status, event_stream=event_stream, named="S2")
    assert play.verdicts == [verdict], "it goes before the session"
    assert play.deadlines.open == {}


def test_a_token_on_a_first_get_makes_it_an_attempt() -> None:
    play = Play()
    play.line(**REQUEST).open("5").event(6, message("a"))
    assert play.verdicts == ["proven: replayed_event"]


def test_a_token_on_a_first_post_does_not() -> None:
    play = Play()
    play.line(**REQUEST).open("5", method="POST").event(6, response(7))
    assert play.verdicts == []


def test_what_an_attempt_tells() -> None:
    play = Play()
    line = cut_line(play)
    play.now += 2.0
    line.open("5", named="S1")
    play.now += 0.5
    line.event(6, message("b"))
    (settled,) = play.of(AttemptSettled)
    assert (settled.elapsed, settled.downtime) == (0.5, 2.0)
    assert (settled.generation, settled.previous_generation, settled.stream) == (HTTP, HTTP, Stream.STANDALONE)
    assert (settled.token, settled.first_event_id, settled.last_event_id, settled.events) == ("5", "6", "6", 1)
    assert settled.previous_session_id == "S1"
    context = settled.context
    assert (context.session_id, context.status_code) == ("S1", 200)
    assert (context.server_address, context.server_port) == ("mcp.example", 8443)
    assert [fact.downtime for fact in play.of(StreamReopened)] == [2.0]


@pytest.mark.parametrize("known", [{}, REQUEST], ids=["standalone", "request"])
def test_another_session_is_a_gap_before_any_event(known: dict[str, Any]) -> None:
    play = Play()
    cut_line(play, **known).open("5", named="S2")
    assert play.verdicts == ["gap: session_changed"]
    (settled,) = play.of(AttemptSettled)
    assert (settled.previous_session_id, settled.context.session_id) == ("S1", "S2")


def test_silence_on_the_session_is_no_evidence() -> None:
    play = Play()
    line = cut_line(play).open("5")
    assert play.verdicts == []
    line.event(6, message("b"))
    assert play.verdicts == ["proven: replayed_event"]


def test_the_session_that_took_over_is_the_bound_one_from_then_on() -> None:
    play = Play()
    line = cut_line(play).open("5", named="S2").event(1, message("x")).end()
    line.open("1", named="S2", session="S1").event(2, message("y"))
    assert play.verdicts == ["gap: session_changed", "proven: replayed_event"]


def test_a_session_may_begin_to_be_named() -> None:
    play = Play()
    line = play.line().open(session=None).event(5, message("a")).end()
    line.open("5", session=None, named="S2").event(6, message("b"))
    assert play.verdicts == ["proven: replayed_event"]


@pytest.mark.parametrize(
    ("known", "cause", "reason"),
    [
        ({}, Disconnect.CLOSED, "retries_exhausted"),
        ({}, Disconnect.RESET, "retries_exhausted"),
        (REQUEST, Disconnect.RESET, "retries_exhausted"),
    ],
)
def test_giving_up_is_a_record_of_its_own(known: dict[str, Any], cause: Disconnect, reason: str) -> None:
    play = Play()
    line = play.line(**known).open(named="S1").event(5, message("a")).end(cause)
    for _ in range(2):
        line.open("5", status=503, event_stream=False)
    line.given_up()
    assert play.verdicts == ["failed: server_error", "failed: server_error", f"abandoned: {reason}"]
    settled = play.of(AttemptSettled)[-1]
    assert (settled.elapsed, settled.token, settled.stream) == (None, "5", known.get("kind", Stream.STANDALONE))


def test_a_request_without_answer_and_ids_has_no_token() -> None:
    play = Play()
    play.line(**REQUEST).open(method="POST").event(None, message("a")).end().given_up()
    assert play.verdicts == ["abandoned: no_token"]


@pytest.mark.parametrize("answer", [response(7), response("7"), response(7, error={"code": 1, "message": "no"})])
def test_an_answered_request_is_not_given_up(answer: str) -> None:
    play = Play()
    play.line(**REQUEST).open(method="POST").event(1, answer).end().given_up()
    assert (play.verdicts, play.ends, play.violations) == ([], ["completed"], [])


def test_an_answer_to_nobody_is_none() -> None:
    play = Play()
    play.line(**REQUEST).open(method="POST").event(None, response(None, error={"code": 1})).end().given_up()
    assert play.verdicts == ["abandoned: no_token"]


@pytest.mark.parametrize("status", [500, 503, 401, None])
def test_a_standalone_stream_that_was_never_opened(status: int | None) -> None:
    play = Play()
    play.line().open(status=status, event_stream=False).open(status=status, event_stream=False).given_up()
    assert play.verdicts == ["abandoned: never_opened"]


@pytest.mark.parametrize("status", [400, 404, 405])
def test_a_server_that_offers_none_is_not_given_up(status: int) -> None:
    play = Play()
    play.line().open(status=status, event_stream=False).open(status=status, event_stream=False).given_up()
    assert play.facts == []


def test_a_request_that_was_refused_is_not_given_up_for_the_sdk_says_so() -> None:
    play = Play()
    play.line(**REQUEST).open(method="POST", status=500, event_stream=False).given_up()
    play.line(**REQUEST).open(method="POST", status=200, event_stream=False).given_up()
    assert play.facts == []


def test_what_the_application_gave_up_is_not_abandoned() -> None:
    play = Play()
    line = play.line(**REQUEST).open(method="POST").event(5, message("a"))
    line.transport.cancelled("7")
    line.end().given_up()
    assert play.verdicts == []


def test_who_leaves_before_the_head_has_arrived_made_no_attempt() -> None:
    play = Play()
    line = cut_line(play)
    line.request("5")
    line.transport.leave()
    line.given_up()
    assert play.verdicts == []
    assert len(play.of(AttemptBegun)) == 1


@pytest.mark.parametrize("status", [200, 404, 500, None])
def test_nor_did_one_that_left_meanwhile(status: int | None) -> None:
    play = Play()
    line = cut_line(play)
    head = line.request("5")
    line.transport.leave()
    line.answered(head, None if status is None else ResponseHead(status, "S2", event_stream=status == 200))
    assert play.verdicts == []


def test_a_connection_ends_once() -> None:
    play = Play()
    line = play.line().open().end(Disconnect.RESET).end(Disconnect.CLOSED)
    assert play.ends == ["reset"]
    line.over()
    line.over()
    (closed,) = play.of(StreamClosed)
    assert (closed.stream, closed.generation) == (Stream.STANDALONE, HTTP)
    assert play.watch.streams == set()


@pytest.mark.parametrize(
    ("cause", "end"),
    [(Disconnect.CLOSED, "completed"), (Disconnect.CANCELLED, "completed"), (Disconnect.RESET, "reset")],
)
def test_a_stream_that_carried_its_answer_is_completed_unless_the_network_broke_it(cause: Disconnect, end: str) -> None:
    play = Play()
    play.line(**REQUEST).open(method="POST").event(1, response(7)).end(cause)
    assert play.ends == [end]

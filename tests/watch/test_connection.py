"""What events on a resumed stream prove, and what they breach."""

from __future__ import annotations

from typing import Any

import pytest

from otel_mcp_resume.rules.terms import Disconnect, Generation, Stream
from otel_mcp_resume.watch.facts import AttemptSettled, Violated
from tests.watch.client_play import Line, Play, message, response

HTTP = Generation.STREAMABLE_HTTP
CALL: dict[str, Any] = {"kind": Stream.REQUEST, "method": "tools/call", "request_id": "7"}
A, B = message("a"), message("b")


def resumed(play: Play, last: str = "5", token: str | None = None, **known: Any) -> Line:
    """A stream that was cut after the event `last`, and is open again."""
    return play.line(**known).open(named="S1").event(last, A).end().open(token or last)


@pytest.mark.parametrize(
    ("event_id", "data", "verdict"),
    [
        ("6", B, "proven: replayed_event"),
        ("5", A, "proven: replayed_event"),
        ("600", B, "proven: replayed_event"),
        ("6", None, "proven: priming_event"),
        ("5", None, "proven: priming_event"),
        ("6", "", "proven: priming_event"),
        ("4", B, "gap: event_id_regression"),
        ("-6", B, "gap: event_id_regression"),
        ("4", None, "gap: event_id_regression"),
        ("5", B, "gap: event_id_collision"),
    ],
)
@pytest.mark.parametrize("known", [{}, CALL], ids=["standalone", "request"])
def test_the_first_id(event_id: str, data: str | None, verdict: str, known: dict[str, Any]) -> None:
    play = Play()
    resumed(play, **known).event(event_id, data)
    assert play.verdicts == [verdict]
    assert play.violations == ([verdict.split()[1]] if "collision" in verdict else [])


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (response(7), "proven: response_matched"),
        (response("7"), "proven: response_matched"),
        (response(7, error={"code": -1, "message": "no"}), "proven: response_matched"),
        (response(8), "gap: foreign_response"),
    ],
)
@pytest.mark.parametrize("event_id", [None, "x9"])
def test_a_response_on_the_stream_of_a_request(answer: str, verdict: str, event_id: str | None) -> None:
    play = Play()
    resumed(play, **CALL).event(event_id, answer)
    assert play.verdicts == [verdict]
    assert play.violations == (["foreign_response"] if "gap" in verdict else [])


def test_a_later_id_that_answers_another_request_is_a_gap() -> None:
    play = Play()
    resumed(play, **CALL).event("6", response(999))
    assert (play.verdicts, play.violations) == (["gap: foreign_response"], ["foreign_response"])


def test_an_answer_to_null_says_nothing() -> None:
    play = Play()
    resumed(play, **CALL).event(None, response(None, error={"code": 1})).end()
    assert play.verdicts == ["unproven: no_event_ids"]


def test_on_the_standalone_stream_responses_say_nothing() -> None:
    play = Play()
    resumed(play, last="x5").event("x6", response(999))
    assert play.verdicts == ["proven: replayed_event"]


def test_only_the_first_id_is_compared() -> None:
    play = Play()
    resumed(play).event("opaque", A).event("1", B).event("6", message("c")).end()
    assert play.verdicts == ["unproven: incomparable_event_id"]


def test_messages_without_an_id_come_before_the_first_id() -> None:
    play = Play()
    resumed(play).event(None, A).event(None, B).event("4", message("c"))
    assert play.verdicts == ["gap: event_id_regression"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no_replay"),
        (": ping\n\n", "heartbeat_only"),
        ("retry: 100\n\n", "heartbeat_only"),
        ("event: message\n\n", "heartbeat_only"),
        ("event: ping\ndata: {}\n\n", "heartbeat_only"),
        ("event: endpoint\ndata: /messages\n\n", "no_replay"),
        ("data:\n\n", "heartbeat_only"),
        (f"data: {A}\n\n", "no_event_ids"),
        (f": ping\n\ndata: {A}\n\n", "no_event_ids"),
        (f"id: x\ndata: {A}\n\n", "incomparable_event_id"),
        ("id: x\n\n", "incomparable_event_id"),
        (f"id: 6\ndata: {A}\n", "no_replay"),
    ],
)
@pytest.mark.parametrize("timeout", [True, False])
def test_no_evidence_until_the_end_or_the_proof_timeout(text: str, reason: str, *, timeout: bool) -> None:
    play = Play()
    line = resumed(play).text(text)
    if timeout:
        play.deadlines.pass_all()
    else:
        line.end()
    assert play.verdicts == [f"unproven: {reason}"]
    line.event("7", B).end()
    play.deadlines.pass_all()
    assert len(play.verdicts) == 1, "a settled attempt is not reopened"


@pytest.mark.parametrize(("ids", "reason"), [(True, "token_not_presented"), (False, "no_event_ids")])
def test_opened_again_without_a_token(*, ids: bool, reason: str) -> None:
    play = Play()
    play.line().open().event("5" if ids else None, A).end().open().event("6", B).end()
    assert play.verdicts == [f"unproven: {reason}"]


def test_a_request_stream_without_a_token_is_proven_by_its_answer() -> None:
    play = Play()
    play.line(**CALL).open(method="POST").event(None, A).end().open().event(None, response(7)).end()
    assert play.verdicts == ["proven: response_matched"]


def test_what_breaks_after_the_verdict_is_a_violation() -> None:
    play = Play()
    line = resumed(play).event("6", B)
    line.event("5", message("not a"))
    assert (play.verdicts, play.violations) == (["proven: replayed_event"], ["event_id_collision"])
    assert play.duplicates == ["collision"]
    (violated,) = play.of(Violated)
    assert (violated.generation, violated.stream) == (HTTP, Stream.STANDALONE)


def test_so_is_what_breaks_without_any_attempt() -> None:
    play = Play()
    play.line(**CALL).open(method="POST").event("1", A).event("1", B).event("2", response(8))
    assert (play.verdicts, play.violations) == ([], ["event_id_collision", "foreign_response"])


def test_one_event_may_breach_twice_and_each_counts_once() -> None:
    play = Play()
    resumed(play, **CALL).event("5", response(8))
    assert play.verdicts == ["gap: event_id_collision"]
    assert sorted(play.violations) == ["event_id_collision", "foreign_response"]


def test_a_message_that_comes_again_is_no_breach() -> None:
    play = Play()
    resumed(play).event("5", A).event("6", B).event("5", A)
    assert (play.verdicts, play.violations) == (["proven: replayed_event"], [])
    assert play.duplicates == ["redelivered", "redelivered"]


def test_a_message_may_carry_the_id_of_a_priming_event() -> None:
    play = Play()
    play.line().open().event("1", None).event("1", A).event("1", A).event("1", B)
    assert (play.duplicates, play.violations) == (["redelivered", "collision"], ["event_id_collision"])


def test_after_a_gap_the_old_ids_are_forgotten() -> None:
    play = Play()
    line = resumed(play).event("1", B)
    line.event("5", message("of the new count")).end()
    line.open("5").event("6", A)
    assert play.verdicts == ["gap: event_id_regression", "proven: replayed_event"]
    assert play.violations == []


def test_events_are_messages_and_nothing_else() -> None:
    play = Play()
    line = play.line().open().event("1", None).event("2", "").text(": ping\n\nretry: 1\n\nevent: x\ndata: y\n\n")
    line.event("3", A).event(None, B)
    assert play.counted == {(HTTP, Stream.STANDALONE): 2}
    line.end()
    assert play.ends == ["closed"]


def test_events_of_an_attempt_are_counted_up_to_the_verdict() -> None:
    play = Play()
    resumed(play).event(None, A).event("x", None).event(None, B).end()
    (settled,) = play.of(AttemptSettled)
    assert (settled.events, settled.first_event_id, settled.last_event_id) == (2, "x", "x")


def test_an_end_before_the_verdict_settles_first() -> None:
    play = Play()
    resumed(play).end(Disconnect.RESET)
    assert [type(fact).__name__ for fact in play.facts[-2:]] == ["AttemptSettled", "StreamClosed"]

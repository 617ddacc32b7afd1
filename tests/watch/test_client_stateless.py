"""Revision 2026-07-28: nothing is resumed, and what is lost is told as that."""

from __future__ import annotations

from typing import Any

import pytest

from otel_mcp_resume.rules.terms import Disconnect, Generation, Stream
from otel_mcp_resume.watch.facts import AttemptSettled
from tests.watch.client_play import LATER, Line, Play, message, response

STATELESS = Generation.STATELESS


def listening(play: Play, **filters: Any) -> Line:
    transport = play.transport(generation=STATELESS)
    return Line.listen(play, transport, "1", filters)


def again(line: Line, request_id: str = "2", **filters: Any) -> Line:
    return Line.listen(line.play, line.transport, request_id, filters)


def test_a_lost_subscription_that_is_opened_again_could_not_be_resumed() -> None:
    play = Play()
    line = (
        listening(play, tools=True).open(method="POST", session=None, protocol=LATER).event(None, message("ack")).end()
    )
    line.over()
    play.now += 3.0
    again(line, tools=True).open(method="POST", session=None, protocol=LATER)
    assert play.verdicts == ["unproven: not_resumable"]
    (settled,) = play.of(AttemptSettled)
    assert (settled.generation, settled.stream, settled.downtime) == (STATELESS, Stream.LISTEN, 3.0)
    assert settled.context.session_id is None


@pytest.mark.parametrize("cause", [Disconnect.CANCELLED, Disconnect.CLOSED])
def test_one_that_was_ended_begins_anew(cause: Disconnect) -> None:
    play = Play()
    line = listening(play).open(method="POST", session=None, protocol=LATER)
    if cause is Disconnect.CLOSED:
        line.event(None, response(1))
    line.end(cause).over()
    again(line).open(method="POST", session=None, protocol=LATER)
    assert play.verdicts == []


def test_another_filter_or_another_client_is_another_subscription() -> None:
    play = Play()
    line = listening(play, tools=True).open(method="POST", session=None, protocol=LATER).end()
    line.over()
    again(line, prompts=True).open(method="POST", session=None, protocol=LATER)
    listening(play, tools=True).open(method="POST", session=None, protocol=LATER)
    assert play.verdicts == []


def test_what_an_sdk_adds_to_the_filter_says_nothing() -> None:
    play = Play()
    line = listening(play, tools=True, _meta={"n": 1}).open(method="POST", session=None, protocol=LATER).end()
    again(line, tools=True, _meta={"n": 2}).open(method="POST", session=None, protocol=LATER)
    assert play.verdicts == ["unproven: not_resumable"]


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(None, "failed: network_error"), (200, "failed: not_event_stream"), (404, "rejected: session_not_found")],
)
def test_a_lost_subscription_that_is_not_taken_again(status: int | None, verdict: str) -> None:
    play = Play()
    line = listening(play).open(method="POST", session=None, protocol=LATER).end()
    again(line).open(method="POST", session=None, protocol=LATER, status=status, event_stream=False)
    assert play.verdicts == [verdict]


def test_a_subscription_is_not_given_up() -> None:
    play = Play()
    listening(play).open(method="POST", session=None, protocol=LATER).end().given_up()
    assert (play.verdicts, play.ends) == ([], ["closed"])


def test_many_subscriptions_are_remembered_the_latest_of_them() -> None:
    play = Play()
    line = listening(play, n=0).open(method="POST", session=None, protocol=LATER).end()
    for number in range(1, 200):
        again(line, str(number), n=number).open(method="POST", session=None, protocol=LATER).end()
    assert len(line.transport._lost_listens) <= 64
    again(line, "x", n=0).open(method="POST", session=None, protocol=LATER)
    assert play.verdicts == []
    again(line, "y", n=199).open(method="POST", session=None, protocol=LATER)
    assert play.verdicts == ["unproven: not_resumable"]


@pytest.mark.parametrize("event_stream", [True, False])
def test_a_token_shown_to_a_stateless_server(*, event_stream: bool) -> None:
    play = Play()
    line = play.line(Stream.REQUEST, method="tools/call", request_id="7")
    line.open("5", method="POST", session=None, protocol=LATER, event_stream=event_stream)
    assert play.verdicts == ["unproven: not_resumable"]


def test_a_stateless_server_may_refuse_it() -> None:
    play = Play()
    play.line(Stream.REQUEST, method="tools/call", request_id="7").open(
        "5", method="GET", session=None, protocol=LATER, status=405, event_stream=False
    )
    assert play.verdicts == ["rejected: not_supported"]

"""Attempts in a row that deliver nothing new: from the third on each of them is a loop."""

from __future__ import annotations

import pytest

from tests.watch.client_play import Line, Play, message

A, B = message("a"), message("b")


def once_more(line: Line, text: str = "", token: str | None = "5") -> Line:
    return line.open(token).text(text).end()


def test_the_third_and_every_later_attempt_that_delivers_nothing_is_a_loop() -> None:
    play = Play()
    line = play.line().open(named="S1").event("5", A).end()
    for text in ("", ": ping\n\n", "", ": ping\n\n", ""):
        once_more(line, text)
    assert play.verdicts == [
        "unproven: no_replay",
        "unproven: heartbeat_only",
        *["unproven: reconnect_loop"] * 3,
    ]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("id: x9\ndata: old\n\n", "incomparable_event_id"),
        ("id: x9\n\n", "incomparable_event_id"),
    ],
    ids=["a message", "a priming event"],
)
def test_what_was_seen_already_is_nothing_new(text: str, first: str) -> None:
    play = Play()
    line = play.line().open(named="S1").text("id: x9\ndata: old\n\nid: x1y\ndata: z\n\n").end()
    for _ in range(4):
        once_more(line, text, token="x1y")
    assert play.verdicts == [*[f"unproven: {first}"] * 2, *["unproven: reconnect_loop"] * 2]


@pytest.mark.parametrize("something", [f"data: {B}\n\n", f"id: x1y\ndata: {B}\n\n", "id: x1y\n\n"])
def test_something_new_breaks_the_row(something: str) -> None:
    play = Play()
    line = play.line().open(named="S1").event("5", A).end()
    for text in ("", "", something, "", "", ""):
        once_more(line, text)
    assert [verdict.endswith("loop") for verdict in play.verdicts] == [False, False, False, False, False, True]


def test_a_proven_attempt_is_part_of_no_loop() -> None:
    play = Play()
    line = play.line().open(named="S1").event("5", A).end()
    for text in ("", "", "id: 5\n\n", "", "", ""):
        once_more(line, text)
    assert play.verdicts[2] == "proven: priming_event"
    assert [verdict.endswith("loop") for verdict in play.verdicts] == [False, False, False, False, False, True]


def test_a_stream_that_wakes_after_the_timeout_breaks_the_row() -> None:
    play = Play()
    line = play.line().open(named="S1").event("5", A).end()
    once_more(once_more(line))
    line.open("5")
    play.deadlines.pass_all()
    line.event("6", B).end()
    once_more(line, token="6")
    assert play.verdicts[2:] == ["unproven: reconnect_loop", "unproven: no_replay"]


def test_a_loop_without_a_token_is_one_too() -> None:
    play = Play()
    line = play.line().open().end()
    for _ in range(3):
        once_more(line, token=None)
    assert play.verdicts == [*["unproven: no_event_ids"] * 2, "unproven: reconnect_loop"]

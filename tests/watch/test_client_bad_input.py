"""Peers that send what nobody should: right verdicts, bounded memory, no exception."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_mcp_resume.rules.terms import Stream
from otel_mcp_resume.watch.facts import AttemptSettled, LedgerEvicted, StreamClosed
from otel_mcp_resume.watch.seen import EVICTIONS_AT_ONCE
from tests.watch.client_play import Limits, Line, Play, message, response

KIB_64 = 65_536
A, B = message("a"), message("b")


def cut_at(play: Play, token: str) -> Line:
    return play.line().open(named="S1").event(token, A).end()


@pytest.mark.parametrize(
    ("token", "first", "verdict"),
    [
        ("9" * KIB_64, "9" * KIB_64, "proven: replayed_event"),
        ("9" * KIB_64, "1" + "0" * KIB_64, "proven: replayed_event"),
        ("9" * KIB_64, "8" * KIB_64, "gap: event_id_regression"),
        ("x" * KIB_64 + "5", "x" * KIB_64 + "6", "proven: replayed_event"),
        ("x" * KIB_64 + "5", "x" * KIB_64 + "4", "gap: event_id_regression"),
        ("x" * KIB_64 + "5", "x" * KIB_64 + "5", "proven: replayed_event"),
        ("x" * KIB_64, "x" * KIB_64, "unproven: incomparable_event_id"),
        ("\x01\x1f\x7f 5", "\x01\x1f\x7f 6", "proven: replayed_event"),
        ("ключ-5", "ключ-4", "gap: event_id_regression"),
        ("鍵\u2028\u0085_5", "鍵\u2028\u0085_6", "proven: replayed_event"),
        ("\ud8005", "\ud8006", "proven: replayed_event"),
        (" 5", " 6", "proven: replayed_event"),
        ("\u0665", "\u0664", "unproven: incomparable_event_id"),
    ],
)
def test_ids_of_any_length_and_script(token: str, first: str, verdict: str) -> None:
    play = Play()
    cut_at(play, token).open(token).event(first, B if first != token else A).end()
    assert play.verdicts == [verdict]
    assert play.violations == []
    shown = [fact.last_event_id for fact in play.of(AttemptSettled)] + [
        fact.last_event_id for fact in play.of(StreamClosed)
    ]
    assert all(len(event_id) <= 1024 for event_id in shown if event_id)


def test_a_long_token_is_known_after_its_stream_and_its_ids_are_gone() -> None:
    play = Play(Limits(max_events=1))
    line = play.line(Stream.REQUEST, method="tools/call", request_id="7")
    line.open(named="S1").event("x" * KIB_64, A).end()
    cut_at(play, "other")
    line.open("x" * KIB_64).event(None, response(8))
    assert play.verdicts == ["gap: foreign_response"]
    line.over()
    play.line(Stream.REQUEST, request_id="9").open("x" * KIB_64, named="S2")
    assert play.verdicts[1:] == ["gap: session_changed"]


def test_an_empty_id_takes_the_token_back() -> None:
    play = Play()
    line = play.line().open(named="S1").event(5, A).event("", B).end()
    line.open("5").event("", None).event("", B).event(6, A)
    assert play.verdicts == ["proven: replayed_event"]
    assert play.duplicates == []


def test_an_id_with_nul_is_none() -> None:
    play = Play()
    cut_at(play, "5").open("5").event("4\0", A).event("6", B)
    assert play.verdicts == ["proven: replayed_event"]


@pytest.mark.parametrize(
    "data",
    ["{", "[]", "[" * 100_000, '{"id":' * 50_000, "null", "7", '{"result":1}', '{"id":{},"result":1}', "\0", "\ud800"],
)
def test_data_that_is_no_message(data: str) -> None:
    play = Play()
    line = play.line(Stream.REQUEST, method="tools/list", request_id="7").open(method="POST", named="S1")
    line.event(5, data).end().open("5").event("6", data).end().given_up()
    assert play.verdicts[:1] in (["proven: replayed_event"], ["gap: foreign_response"])


def test_a_server_that_sends_three_hundred_thousand_ids() -> None:
    play = Play(Limits(max_events=1000, max_streams=10))
    line = play.line().open(named="S1")
    for start in range(0, 300_000, 1000):
        line.text("".join(f"id: {number}\ndata: {A}\n\n" for number in range(start, start + 1000)))
    told = play.of(LedgerEvicted)
    memory = play.watch.memory
    assert (memory.size, len(memory._order), len(line.stream.seen)) == (1000, 1000, 1000)
    assert len(told) >= 2, "while it runs, not only at its end"
    play.tell(play.watch.evictions())
    assert sum(fact.count for fact in play.of(LedgerEvicted)) == 299_000
    assert all(fact.count >= EVICTIONS_AT_ONCE for fact in told)
    line.end().open("299999").event(300_000, B)
    assert play.verdicts == ["proven: replayed_event"]


def test_streams_without_end_leave_a_bounded_memory() -> None:
    play = Play(Limits(max_events=1000, max_streams=50))
    for number in range(2000):
        line = cut_at(play, f"t{number}").open(f"t{number}").event("x", B)
        line.end().over()
    watch = play.watch
    assert (watch.streams, watch.memory.size, watch._open, play.deadlines.open) == (set(), 0, {}, {})
    assert len(watch._cursors._received) == 50
    play.tell(watch.evictions())
    assert sum(fact.count for fact in play.of(LedgerEvicted)) > 1900


@given(
    st.lists(
        st.text(max_size=30) | st.sampled_from(["id: 5\n", "id:\n", "data: x\n", "\n", "\r", "event: e\n", "id: 4\n\n"])
    )
)
def test_no_text_at_all_is_too_much(pieces: list[str]) -> None:
    play = Play()
    line = cut_at(play, "5").open("5")
    for piece in pieces:
        line.text(piece)
    line.end()
    assert len(play.verdicts) == 1

"""What all clients of a process share, over threads, forks and limits; and the rule that the library shares too."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from otel_mcp_resume.rules.cursor import ResumptionGapError, StreamCursor, verify_resumption
from otel_mcp_resume.watch.client import ClientWatch
from otel_mcp_resume.watch.deadlines import Deadlines
from otel_mcp_resume.watch.facts import AttemptSettled, Fact, LedgerEvicted, StreamClosed
from tests.watch.client_play import Limits, Line, Play, message

A, B = message("a"), message("b")

SESSIONS = st.sampled_from([None, "S1", "S2"])
IDS = st.sampled_from(["5", "4", "6", "-5", "e-4", "e-12", "abc", "abd", "1/0", "2/0"])


@given(session=SESSIONS, token=IDS, named=SESSIONS, first=IDS | st.none())
def test_library_and_hooks_agree(session: str | None, token: str, named: str | None, first: str | None) -> None:
    try:
        verdict = verify_resumption(StreamCursor(session, token), named, first)
        library = f"{verdict.outcome}: {verdict.reason}"
    except ResumptionGapError as error:
        library = f"{'unproven' if error.reason == 'no_replay' else 'gap'}: {error.reason}"
    play = Play()
    line = (
        play.line().open(session=session, named=session).event(token, A).end().open(token, session=session, named=named)
    )
    if first is not None:
        line.event(first, A)
    line.end()
    assert play.verdicts == [library]


def test_the_verdict_falls_while_the_stream_runs() -> None:
    told: list[Fact] = []
    arrived = threading.Event()

    def emit(facts: Any) -> None:
        told.extend(facts)
        arrived.set()

    deadlines = Deadlines(0.01, lambda _hook, error: told.append(error))  # type: ignore[arg-type]
    play = Play()
    play.watch = ClientWatch(emit=emit, events=play._events, deadlines=deadlines, limits=Limits())
    line = play.line().open(named="S1").event(5, A).end().open("5")
    assert arrived.wait(30)
    assert [str(fact.reason) for fact in told if isinstance(fact, AttemptSettled)] == ["no_replay"]
    assert play.of(AttemptSettled) == []
    line.end()
    deadlines.close()
    assert len(play.of(StreamClosed)) == 2


def test_what_waits_for_its_evidence_is_forgotten_with_the_verdict() -> None:
    play = Play()
    ends: list[Callable[[Line], object]] = [
        lambda line: line.event(6, B),
        Line.end,
        lambda _: play.deadlines.pass_all(),
    ]
    for end in ends:
        line = play.line().open(named="S1").event(5, A).end().open("5")
        assert len(play.deadlines.open) == len(play.watch._open) == 1
        end(line)
        assert (play.deadlines.open, play.watch._open) == ({}, {})
    assert len(play.verdicts) == 3


def test_a_forked_child_begins_empty_and_waits_for_no_lock_of_the_parent() -> None:
    play = Play()
    line = play.line().open(named="S1").event(5, A)
    play.transport().call_left("pay", {})
    play.watch.calls._lock.acquire()  # held by a thread that the child does not have
    held = threading.Event()
    release = threading.Event()

    def hold() -> None:
        with play.watch.lock:
            held.set()
            release.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(30)
    play.watch.after_fork()
    play.post(play.transport(), call=("pay", {}))
    assert (play.violations, play.watch.streams) == ([], set())
    line.event(6, B).end().open("6").event(7, A).end().over()
    assert play.verdicts == ["proven: replayed_event"]
    release.set()
    holder.join(30)


def test_what_had_to_be_forgotten_is_told_once() -> None:
    play = Play(Limits(max_events=2, max_streams=1))
    line = play.line().open(named="S1")
    for number in range(5):
        line.event(number, A)
    line.end()
    play.line().open(named="S1").event("x", A).end()
    play.tell(play.watch.evictions())
    play.tell(play.watch.evictions())
    assert [fact.count for fact in play.of(LedgerEvicted)] == [3 + 1 + 1]


def test_several_event_loops_share_a_watch() -> None:
    play = Play(Limits(max_events=50, max_streams=20))
    failed: list[Exception] = []

    def work(name: str) -> None:
        try:
            for number in range(100):
                line = play.line().open(named="S1").event(f"{name}-{number}", A).end()
                line.open(f"{name}-{number}").event(f"{name}-{number + 1}", B).end().over()
        except Exception as error:  # noqa: BLE001 - whatever it is, a thread must not swallow it
            failed.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    assert play.verdicts == ["proven: replayed_event"] * 400
    assert play.watch.streams == set()

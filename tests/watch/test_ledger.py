"""The bounded memory: in order, oldest first out, counted, and honest about what it has forgotten."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_mcp_resume.rules.terms import Outcome, Reason, UndeliveredCause, ViolationRule
from otel_mcp_resume.watch.facts import LedgerEvicted
from otel_mcp_resume.watch.ledger import Ledger
from otel_mcp_resume.watch.server_account import SessionAccount
from otel_mcp_resume.watch.server_debt import Cursor
from otel_mcp_resume.watch.subjects import PRIMING
from tests.watch.server_world import GET_STREAM, World

EVICTED = (Outcome.UNPROVEN, Reason.LEDGER_EVICTED)


def evicted(world: World) -> int:
    return sum(fact.count for fact in world.of(LedgerEvicted))


def test_what_comes_after_a_place_is_given_in_order_and_without_priming_events() -> None:
    world = World()
    session = world.session()
    stream = session.standalone_stream()
    first = world.emit(session)
    session.storing += 1
    world.take(session.primed(GET_STREAM, "primed"))
    later = [world.emit(session), world.emit(session)]
    assert stream.subjects["primed"] is PRIMING
    assert stream.after(stream.events[first]) == later
    assert stream.after(stream.events[first], until=stream.events[later[0]]) == later[:1]
    assert stream.after(stream.events[later[1]]) == []


def test_the_oldest_event_of_all_streams_is_forgotten_first() -> None:
    world = World(max_events=6)
    session = world.session()
    old = [world.emit(session, name) for name in ("7", GET_STREAM)]
    new = [world.emit(session, name) for name in ("7", GET_STREAM, "7", "7", GET_STREAM, "7")]
    kept = {event_id for stream in session.streams.values() for event_id in stream.events}
    assert kept == set(new)
    assert not kept & set(old)
    assert world.watch.remembered[1] == 6
    assert evicted(world) == 2 + 2  # and the two of the handshake


def test_a_full_ledger_forgets_a_little_more_than_it_must_so_that_not_every_event_pays() -> None:
    world = World(max_events=1024)
    session = world.session()
    wire = world.get(session)
    for _ in range(4096):
        world.emit(session)
        wire.write()
    assert 1024 - 4 <= world.watch.remembered[1] <= 1024
    assert len(world.of(LedgerEvicted)) <= 4096 / 4
    assert evicted(world) + world.watch.remembered[1] == 4096 + 2


def test_a_token_that_was_evicted_is_neither_fine_nor_a_gap() -> None:
    world = World(max_events=4)
    session = world.session()
    wire = world.get(session)
    token = world.emit(session)
    wire.write().drop(session)
    for _ in range(10):
        world.emit(session)
    world.replayed(session, token, [])
    assert world.verdicts == [EVICTED]
    assert world.violations == []


def test_a_second_handshake_brings_nothing_back() -> None:
    world = World(max_events=4)
    session = world.session()
    for _ in range(10):
        world.emit(session)
    session.inbox.initialized("tester 1")
    assert not session.is_complete


def test_a_forgotten_message_that_was_never_written_makes_a_reopening_unjudgeable_once() -> None:
    world = World(max_events=4)
    session = world.session()
    world.get(session).drop(session)
    for _ in range(10):
        world.emit(session)
    world.get(session).drop(session)
    assert world.verdicts == [EVICTED]
    world.end(session)
    assert world.undelivered == {UndeliveredCause.SESSION_ENDED: 4}


def test_a_foreign_event_is_no_proof_in_a_session_that_has_forgotten_some() -> None:
    world = World(max_events=8)
    session = world.session()
    wire = world.get(session)
    for _ in range(20):
        token = world.emit(session)
        wire.write()
    wire.drop(session)
    owed = world.emit(session)
    world.replayed(session, token, ["may-have-been-forgotten", owed])
    assert (Outcome.GAP, Reason.CROSS_SESSION_REPLAY) not in world.verdicts
    assert world.violations == []


def test_another_session_still_knows_all_of_its_own() -> None:
    world = World(max_events=12)
    busy, quiet = world.session("A"), world.session("B")
    wire = world.get(busy)
    for _ in range(6):
        world.emit(busy)
        wire.write()
    assert quiet.is_complete
    other = world.get(quiet, "foreign", header="B")
    other.replay(quiet, ["foreign"])
    assert world.verdicts == [(Outcome.GAP, Reason.CROSS_SESSION_REPLAY)]


def test_the_stream_that_rested_longest_is_forgotten_first_and_an_open_one_never() -> None:
    world = World(max_streams=4)
    session = world.session()
    open_one = world.get(session)
    for name in ("7", "8", "9", "10", "11"):
        world.emit(session, name)
    assert set(session.streams) == {GET_STREAM, "9", "10", "11"}
    assert world.watch.remembered[0] == 4
    assert evicted(world) == 3  # the handshake's as well
    world.emit(session)
    open_one.write()
    assert world.undelivered == {}


def test_more_open_streams_than_may_be_remembered_are_no_reason_to_forget_them() -> None:
    world = World(max_streams=3)
    session = world.session()
    wires = [world.post(session, str(number)) for number in range(200)]
    assert len(session.streams) == 200
    for number, wire in enumerate(wires):
        world.emit(session, str(number))
        wire.write().end(finished=True)
    assert world.undelivered == {}


def test_a_session_gives_everything_back_at_once() -> None:
    world = World()
    session = world.session()
    for name in ("7", "8", GET_STREAM):
        for _ in range(10):
            world.emit(session, name)
    world.end(session)
    assert world.watch.remembered == (0, 0)
    assert not session.streams


def test_a_request_without_a_store_gives_everything_back_with_its_last_message() -> None:
    world = World()
    session = world.session(stored=False)
    for number in range(100):
        wire = world.post(session, str(number))
        world.emit(session, str(number))
        wire.write().end(finished=True)
    assert world.watch.remembered == (0, 0)


def test_streams_that_come_and_go_leave_no_trace_in_the_queues() -> None:
    world = World()
    for number in range(6_000):
        session = world.watch.session(str(number), standalone=GET_STREAM, is_stored=True)
        world.take(session.stored(GET_STREAM, "1"))
        world.take(session.end())
    ledger: Ledger = world.watch._state.ledger
    assert len(ledger._by_event) + len(ledger._by_stream) < 5000
    assert world.watch.remembered == (0, 0)


def test_a_replay_of_everything_does_not_look_at_everything_for_each_event(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    session = world.session()
    foreign = [world.emit(session, str(number)) for number in range(3000)]
    wire = world.get(session)
    token = world.emit(session)
    wire.write().drop(session)
    wire = world.get(session, token)
    looked_for: list[str] = []
    find = SessionAccount.find

    def counting(account: SessionAccount, event_id: str) -> Cursor | None:
        looked_for.append(event_id)
        return find(account, event_id)

    monkeypatch.setattr(SessionAccount, "find", counting)
    wire.replay(session, [*foreign, *(f"not of this session {number}" for number in range(3000))]).returned(None)
    assert looked_for == ["not of this session 0"]
    assert world.verdicts == [(Outcome.GAP, Reason.CROSS_STREAM_REPLAY)]
    assert world.violations == [ViolationRule.CROSS_STREAM_REPLAY, ViolationRule.CROSS_SESSION_REPLAY]


@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=80),
)
def test_the_counts_are_those_of_what_is_there(limit: int, emissions: list[tuple[int, int]]) -> None:
    world = World(max_events=limit, max_streams=4)
    sessions = {number: world.session(str(number)) for number in range(4)}
    for number, stream in emissions:
        if stream == 4:
            world.end(sessions[number])
            sessions[number] = world.session(str(number))
        else:
            world.emit(sessions[number], str(stream))
        streams = [entry for session in sessions.values() for entry in session.streams.values()]
        there = sum(len(entry.events) for entry in streams)
        assert world.watch.remembered == (len(streams), there)
        assert there <= limit
        assert len(streams) <= 4
        for entry in streams:
            assert list(entry.events.values()) == sorted(entry.events.values())
            assert set(entry.parked) | set(entry.subjects) <= set(entry.events)

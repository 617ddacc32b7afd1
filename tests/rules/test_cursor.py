from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_mcp_resume import Outcome, Reason, ResumptionGapError, StreamCursor, Verdict, resume_stream, verify_resumption
from otel_mcp_resume.rules.terms import Generation, Stream
from otel_mcp_resume.rules.verdict import EventEvidence, judge_event, judge_session

CURSOR = StreamCursor("S1", 4821)
REPLAYED = Verdict(Outcome.PROVEN, Reason.REPLAYED_EVENT)
OPAQUE = Verdict(Outcome.UNPROVEN, Reason.INCOMPARABLE_EVENT_ID)


def test_a_cursor_knows_where_its_token_came_from() -> None:
    assert (CURSOR.stream, CURSOR.generation, CURSOR.endpoint) == (Stream.STANDALONE, Generation.STREAMABLE_HTTP, None)
    assert StreamCursor(session_id="S1", last_event_id=4821) == CURSOR


@pytest.mark.parametrize(
    ("cursor", "named", "first", "verdict"),
    [
        (CURSOR, "S1", 4821, REPLAYED),
        (CURSOR, "S1", "4822", REPLAYED),
        (CURSOR, None, 4900, REPLAYED),
        (StreamCursor(None, 4821), "S9", 4822, REPLAYED),
        (StreamCursor("S1", "4821"), "S1", 4822, REPLAYED),
        (StreamCursor("S1", "e-9"), "S1", "e-10", REPLAYED),
        (StreamCursor("S1", "e-9"), "S1", "f-10", OPAQUE),
        (StreamCursor("S1", 0), "S1", 0, REPLAYED),
        (StreamCursor("S1", -3), "S1", -2, REPLAYED),
        (StreamCursor("S1", "f948030c-8159"), "S1", "1948030c-8159", OPAQUE),
    ],
)
def test_a_stream_that_goes_on(cursor: StreamCursor, named: str | None, first: int | str, verdict: Verdict) -> None:
    assert verify_resumption(cursor, named, first) == verdict


@pytest.mark.parametrize(
    ("cursor", "named", "first", "reason", "told"),
    [
        (CURSOR, "S2", 4822, Reason.SESSION_CHANGED, ["session changed", "'S1'", "'S2'"]),
        (CURSOR, "S2", None, Reason.SESSION_CHANGED, ["session changed", "'S1'", "'S2'"]),
        (CURSOR, "S2", 1, Reason.SESSION_CHANGED, ["session changed", "'S1'", "'S2'"]),
        (CURSOR, "S1", None, Reason.NO_REPLAY, ["no event was replayed", "'4821'"]),
        (CURSOR, None, None, Reason.NO_REPLAY, ["no event was replayed", "'4821'"]),
        (CURSOR, "S1", "", Reason.NO_REPLAY, ["no event was replayed", "'4821'"]),
        (CURSOR, "S1", 1, Reason.EVENT_ID_REGRESSION, ["regressed", "'4821'", "'1'"]),
        (StreamCursor("S1", "e-10"), None, "e-9", Reason.EVENT_ID_REGRESSION, ["regressed", "'e-10'", "'e-9'"]),
    ],
)
def test_it_fails_closed_for_three_causes_and_says_which(
    cursor: StreamCursor, named: str | None, first: int | str | None, reason: Reason, told: list[str]
) -> None:
    with pytest.raises(ResumptionGapError) as caught:
        verify_resumption(cursor, named, first)
    assert caught.value.reason is reason
    assert isinstance(caught.value, RuntimeError)
    assert all(part in str(caught.value) for part in told), str(caught.value)


def test_integers_may_be_longer_than_python_prints() -> None:
    cursor = StreamCursor("S1", 10**5000)
    assert verify_resumption(cursor, "S1", 10**5000 + 1) == REPLAYED
    with pytest.raises(ResumptionGapError, match="regressed"):
        verify_resumption(cursor, "S1", 10**5000 - 1)


@pytest.mark.parametrize("token", [None, 4.5, b"5", True, ["5"]])
def test_a_token_is_an_int_or_a_str(token: object) -> None:
    with pytest.raises(TypeError, match=type(token).__name__):
        StreamCursor("S1", token)  # type: ignore[arg-type]
    if token is not None:
        with pytest.raises(TypeError, match=type(token).__name__):
            verify_resumption(CURSOR, "S1", token)  # type: ignore[arg-type]


def test_an_empty_token_resumes_nothing() -> None:
    with pytest.raises(ValueError, match="empty"):
        StreamCursor("S1", "")


@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_the_error_crosses_processes(again: type) -> None:
    with pytest.raises(ResumptionGapError) as caught:
        verify_resumption(CURSOR, "S2", 1)
    copied = again(caught.value)
    assert (type(copied), str(copied), copied.reason) == (ResumptionGapError, str(caught.value), Reason.SESSION_CHANGED)


SESSIONS = st.sampled_from([None, "S1", "S2"])
IDS = st.integers(-3, 12) | st.sampled_from(["5", "e-4", "e-12", "", "abc", "1/0", "2/0"])


@given(session=SESSIONS, token=IDS.filter(bool), named=SESSIONS, first=st.none() | IDS)
def test_the_library_applies_the_rule_of_the_hooks(
    session: str | None, token: int | str, named: str | None, first: int | str | None
) -> None:
    shown = None if first in (None, "") else str(first)
    rule = judge_session(session, named)
    if rule is None and shown is not None:
        rule = judge_event(EventEvidence(str(token), first_id=shown, has_payload=True)) or OPAQUE
    try:
        verdict: Verdict | None = verify_resumption(StreamCursor(session, token), named, first)
    except ResumptionGapError as error:
        verdict = None if error.reason is Reason.NO_REPLAY else Verdict(Outcome.GAP, error.reason)
    assert verdict == rule


@dataclass
class Source:
    """A server in a list: what was asked of it, and how far it was read."""

    session_id: str | None
    events: list[tuple[int | str | None, str]]
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    read: int = 0

    async def open(self, headers: Mapping[str, str]) -> tuple[str | None, AsyncIterator[tuple[int | str | None, str]]]:
        self.headers = headers
        await asyncio.sleep(0)
        return self.session_id, self._replay()

    async def _replay(self) -> AsyncIterator[tuple[int | str | None, str]]:
        for event in self.events:
            await asyncio.sleep(0)
            self.read += 1
            yield event


async def _collect(cursor: StreamCursor, source: Source, into: list[tuple[int | str | None, str]]) -> None:
    async for event in resume_stream(cursor, source.open):
        into.append(event)  # noqa: PERF401 - what was handed out before an error counts


def resumed(cursor: StreamCursor, source: Source) -> list[tuple[int | str | None, str]]:
    events: list[tuple[int | str | None, str]] = []
    try:
        asyncio.run(_collect(cursor, source, events))
    except ResumptionGapError:
        assert events == [], "handed out before it was verified"
        raise
    return events


def test_a_resumed_stream_hands_out_everything() -> None:
    source = Source("S1", [(4822, "a"), (None, "b"), ("4824", "c")])
    assert resumed(CURSOR, source) == source.events
    assert source.headers == {"Last-Event-ID": "4821", "Mcp-Session-Id": "S1"}


def test_without_a_session_none_is_sent() -> None:
    source = Source(None, [("x", "a")])
    assert resumed(StreamCursor(None, "w"), source) == source.events
    assert source.headers == {"Last-Event-ID": "w"}


@pytest.mark.parametrize(
    ("source", "reason", "read"),
    [
        (Source("S2", [(4822, "a")]), Reason.SESSION_CHANGED, 0),
        (Source("S1", [(7, "a"), (8, "b")]), Reason.EVENT_ID_REGRESSION, 1),
        (Source("S1", [(None, "a"), (4822, "b")]), Reason.NO_REPLAY, 1),
        (Source("S1", []), Reason.NO_REPLAY, 0),
    ],
)
def test_nothing_is_handed_out_before_it_is_verified(source: Source, reason: Reason, read: int) -> None:
    with pytest.raises(ResumptionGapError) as caught:
        resumed(CURSOR, source)
    assert (caught.value.reason, source.read) == (reason, read)


def test_what_the_source_raises_passes() -> None:
    async def refused(headers: Mapping[str, str]) -> tuple[str | None, AsyncIterator[tuple[int | str | None, str]]]:
        raise ConnectionRefusedError(headers["Last-Event-ID"])

    async def play() -> None:
        async for _ in resume_stream(CURSOR, refused):
            pass

    with pytest.raises(ConnectionRefusedError, match="4821"):
        asyncio.run(play())

"""Every row of the client's column, with literal values."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_mcp_resume.rules.terms import Outcome, Reason
from otel_mcp_resume.rules.verdict import (
    EventEvidence,
    Silence,
    Verdict,
    judge_event,
    judge_session,
    judge_silence,
    judge_status,
    same_request,
)

FAILED, REJECTED, GAP, PROVEN, UNPROVEN = (
    Outcome.FAILED,
    Outcome.REJECTED,
    Outcome.GAP,
    Outcome.PROVEN,
    Outcome.UNPROVEN,
)


@pytest.mark.parametrize(
    ("status", "outcome", "reason"),
    [
        (None, FAILED, Reason.NETWORK_ERROR),
        (500, FAILED, Reason.SERVER_ERROR),
        (503, FAILED, Reason.SERVER_ERROR),
        (599, FAILED, Reason.SERVER_ERROR),
        (400, REJECTED, Reason.BAD_REQUEST),
        (401, REJECTED, Reason.UNAUTHORIZED),
        (403, REJECTED, Reason.UNAUTHORIZED),
        (404, REJECTED, Reason.SESSION_NOT_FOUND),
        (405, REJECTED, Reason.NOT_SUPPORTED),
        (409, REJECTED, Reason.STREAM_CONFLICT),
        (402, REJECTED, Reason.OTHER_4XX),
        (410, REJECTED, Reason.OTHER_4XX),
        (429, REJECTED, Reason.OTHER_4XX),
        (302, FAILED, Reason.NOT_EVENT_STREAM),
        (304, FAILED, Reason.NOT_EVENT_STREAM),
        (101, FAILED, Reason.NOT_EVENT_STREAM),
    ],
)
@pytest.mark.parametrize("event_stream", [True, False])
def test_a_status_that_is_no_success(
    status: int | None, outcome: Outcome, reason: Reason, *, event_stream: bool
) -> None:
    assert judge_status(status, event_stream=event_stream) == Verdict(outcome, reason)


@pytest.mark.parametrize("status", [200, 202, 204, 206])
def test_a_success_proves_nothing_but_has_to_be_an_event_stream(status: int) -> None:
    assert judge_status(status, event_stream=True) is None
    assert judge_status(status, event_stream=False) == Verdict(FAILED, Reason.NOT_EVENT_STREAM)


@pytest.mark.parametrize(
    ("bound", "named", "changed"),
    [
        ("S1", "S2", True),
        ("S1", "s1", True),
        ("S1", "S1 ", True),
        ("S1", "", True),
        ("S1", "S1", False),
        ("S1", None, False),
        (None, "S2", False),
        (None, None, False),
    ],
)
def test_sessions_are_compared_to_the_letter(bound: str | None, named: str | None, *, changed: bool) -> None:
    assert judge_session(bound, named) == (Verdict(GAP, Reason.SESSION_CHANGED) if changed else None)


RESUMED = EventEvidence(token="4821", has_payload=True)


@pytest.mark.parametrize(
    ("event", "verdict"),
    [
        (replace(RESUMED, first_id="4820"), Verdict(GAP, Reason.EVENT_ID_REGRESSION)),
        (replace(RESUMED, first_id="4821"), Verdict(PROVEN, Reason.REPLAYED_EVENT)),
        (replace(RESUMED, first_id="4830"), Verdict(PROVEN, Reason.REPLAYED_EVENT)),
        (replace(RESUMED, first_id="4830", has_payload=False), Verdict(PROVEN, Reason.PRIMING_EVENT)),
        (replace(RESUMED, first_id="4820", has_payload=False), Verdict(GAP, Reason.EVENT_ID_REGRESSION)),
        (replace(RESUMED, first_id="other"), None),
        (RESUMED, None),
        (replace(RESUMED, token=None, first_id="4822"), None),
        (replace(RESUMED, collides=True), Verdict(GAP, Reason.EVENT_ID_COLLISION)),
        (replace(RESUMED, request_id="7", response_id="7"), Verdict(PROVEN, Reason.RESPONSE_MATCHED)),
        (replace(RESUMED, request_id="7", response_id='"7"'), Verdict(PROVEN, Reason.RESPONSE_MATCHED)),
        (replace(RESUMED, request_id="7", response_id="8"), Verdict(GAP, Reason.FOREIGN_RESPONSE)),
        (replace(RESUMED, request_id="7", response_id="null"), None),
        (replace(RESUMED, request_id=None, response_id="8"), None),
        (replace(RESUMED, token=None, request_id="7", response_id="7"), Verdict(PROVEN, Reason.RESPONSE_MATCHED)),
    ],
)
def test_one_event(event: EventEvidence, verdict: Verdict | None) -> None:
    assert judge_event(event) == verdict


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (replace(RESUMED, first_id="4822", request_id="7", response_id="8"), Reason.FOREIGN_RESPONSE),
        (replace(RESUMED, first_id="4822", collides=True), Reason.EVENT_ID_COLLISION),
        (replace(RESUMED, first_id="1", request_id="7", response_id="7"), Reason.EVENT_ID_REGRESSION),
        (replace(RESUMED, first_id="1", collides=True, request_id="7", response_id="8"), Reason.EVENT_ID_REGRESSION),
        (replace(RESUMED, collides=True, request_id="7", response_id="7"), Reason.EVENT_ID_COLLISION),
    ],
)
@pytest.mark.parametrize("trusted", [True, False])
def test_evidence_against_goes_before_evidence_for(event: EventEvidence, reason: Reason, *, trusted: bool) -> None:
    assert judge_event(replace(event, trusted=trusted)) == Verdict(GAP, reason)


@given(
    st.builds(
        EventEvidence,
        token=st.sampled_from([None, "5", "x"]),
        first_id=st.sampled_from([None, "4", "6", "y"]),
        has_payload=st.booleans(),
        collides=st.booleans(),
        request_id=st.sampled_from([None, "1"]),
        response_id=st.sampled_from([None, "1", "2", "null"]),
        trusted=st.just(value=False),
    )
)
def test_a_token_of_another_generation_is_proven_by_nothing_where_the_session_is_silent(event: EventEvidence) -> None:
    verdict = judge_event(event)
    assert verdict is None or verdict.outcome is GAP


@pytest.mark.parametrize(
    ("request_id", "response_id", "same"),
    [
        ("1", "1", True),
        ("1", '"1"', True),
        ('"1"', "1", True),
        ('"a"', '"a"', True),
        ('"a"', '"A"', False),
        ("1", "11", False),
        ("1", "null", None),
        (None, "1", None),
        ("1", None, None),
        (None, None, None),
    ],
)
def test_the_same_request(request_id: str | None, response_id: str | None, *, same: bool | None) -> None:
    assert same_request(request_id, response_id) is same


SHOWN = Silence(token="5", ids_before=True)


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (SHOWN, Reason.NO_REPLAY),
        (replace(SHOWN, heartbeats=True), Reason.HEARTBEAT_ONLY),
        (replace(SHOWN, messages=True), Reason.NO_EVENT_IDS),
        (replace(SHOWN, messages=True, heartbeats=True), Reason.NO_EVENT_IDS),
        (replace(SHOWN, ids=True), Reason.INCOMPARABLE_EVENT_ID),
        (replace(SHOWN, ids=True, messages=True), Reason.INCOMPARABLE_EVENT_ID),
        (replace(SHOWN, token=None), Reason.TOKEN_NOT_PRESENTED),
        (replace(SHOWN, token=None, ids=True, messages=True), Reason.TOKEN_NOT_PRESENTED),
        (replace(SHOWN, token=None, ids_before=False), Reason.NO_EVENT_IDS),
        (replace(SHOWN, other_generation=True, ids=True), Reason.GENERATION_CHANGED),
        (replace(SHOWN, resumable=False, token=None), Reason.NOT_RESUMABLE),
        (replace(SHOWN, resumable=False), Reason.NOT_RESUMABLE),
    ],
)
@pytest.mark.parametrize("barren", [0, 1])
def test_what_was_missing(seen: Silence, reason: Reason, barren: int) -> None:
    assert judge_silence(replace(seen, barren_attempts=barren)) == Verdict(UNPROVEN, reason)


@pytest.mark.parametrize("barren", [2, 3, 1000])
def test_the_third_attempt_that_brings_nothing_new_is_a_loop_whatever_else_is_missing(barren: int) -> None:
    for token, ids_before, heartbeats, other in product((None, "5"), (True, False), (True, False), (True, False)):
        seen = Silence(
            token, ids_before=ids_before, heartbeats=heartbeats, other_generation=other, barren_attempts=barren
        )
        assert judge_silence(seen) == Verdict(UNPROVEN, Reason.RECONNECT_LOOP)

"""The client-side rule: what one response, and one event, say about a resumption.

A `200 OK` proves nothing. Every function here answers with a verdict when its evidence settles the
attempt, and with None when it says nothing. The order in which they are asked is the rule's order:
`judge_status`, `judge_session`, then `judge_event` for each event until one settles.
"""

from __future__ import annotations

from dataclasses import dataclass

from otel_mcp_resume.rules.event_id import compare_event_ids
from otel_mcp_resume.rules.terms import Outcome, Reason

__all__ = [
    "EventEvidence",
    "Silence",
    "Verdict",
    "judge_event",
    "judge_session",
    "judge_silence",
    "judge_status",
    "same_request",
]

LOOP_LENGTH = 3
"""The third attempt in a row that delivers nothing new is a loop, and so is each later one."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an attempt settled, and why."""

    outcome: Outcome
    reason: Reason


_REFUSALS = {
    400: Reason.BAD_REQUEST,
    401: Reason.UNAUTHORIZED,
    403: Reason.UNAUTHORIZED,
    404: Reason.SESSION_NOT_FOUND,
    405: Reason.NOT_SUPPORTED,
    409: Reason.STREAM_CONFLICT,
}


def judge_status(status: int | None, *, event_stream: bool) -> Verdict | None:
    """The response head. `status` is None if there was no response, `event_stream` whether one was promised.

    A refusal is loud and therefore safe. A redirect that was not followed is no event stream.
    """
    if status is None:
        return Verdict(Outcome.FAILED, Reason.NETWORK_ERROR)
    if status >= 500:
        return Verdict(Outcome.FAILED, Reason.SERVER_ERROR)
    if status >= 400:
        return Verdict(Outcome.REJECTED, _REFUSALS.get(status, Reason.OTHER_4XX))
    if not event_stream or not 200 <= status < 300:
        return Verdict(Outcome.FAILED, Reason.NOT_EVENT_STREAM)
    return None


def judge_session(bound: str | None, named: str | None) -> Verdict | None:
    """The session of the response against that of the token, compared to the letter.

    A response that names no session is no evidence: the header is required on `initialize` alone.
    Nor is there any if the token is bound to none.
    """
    if bound is None or named is None or bound == named:
        return None
    return Verdict(Outcome.GAP, Reason.SESSION_CHANGED)


@dataclass(frozen=True, slots=True)
class EventEvidence:
    """What one event on a resumed stream shows."""

    token: str | None
    """The `Last-Event-ID` presented; None if the stream was opened again without one."""
    first_id: str | None = None
    """The event's id, if it is the first one that was written on the wire for this connection."""
    has_payload: bool = False
    collides: bool = False
    """The id was seen on this stream before, with another payload."""
    request_id: str | None = None
    """The JSON-RPC id of the request whose stream this is, as JSON text; None if it is unknown or there is none."""
    response_id: str | None = None
    """The JSON-RPC id of the response that the event carries, as JSON text; None if it carries none."""
    trusted: bool = True
    """False if the token is of another generation and the response did not name the token's session."""


def judge_event(event: EventEvidence) -> Verdict | None:  # noqa: PLR0911 - the rule is a list of cases
    """One event. Evidence against goes before evidence for, within one event too."""
    order = None
    if event.token is not None and event.first_id is not None:
        order = compare_event_ids(event.first_id, event.token)
    answer = same_request(event.request_id, event.response_id)
    if order is not None and order < 0:
        return Verdict(Outcome.GAP, Reason.EVENT_ID_REGRESSION)
    if event.collides:
        return Verdict(Outcome.GAP, Reason.EVENT_ID_COLLISION)
    if answer is False:
        return Verdict(Outcome.GAP, Reason.FOREIGN_RESPONSE)
    if not event.trusted:
        return None
    if order is not None:
        return Verdict(Outcome.PROVEN, Reason.REPLAYED_EVENT if event.has_payload else Reason.PRIMING_EVENT)
    if answer:
        return Verdict(Outcome.PROVEN, Reason.RESPONSE_MATCHED)
    return None


def same_request(request_id: str | None, response_id: str | None) -> bool | None:
    """Whether a response answers a request; None if that can't be said.

    Both are JSON texts as written on the wire. `1` and `"1"` are the same request; `null` is the id of none.
    """
    if request_id is None or response_id is None or response_id == "null":
        return None
    return request_id.strip('"') == response_id.strip('"')


@dataclass(frozen=True, slots=True)
class Silence:
    """What was seen of a connection that ended, or ran out of time, without settling its attempt."""

    token: str | None
    ids_before: bool = False
    """The stream had sent event ids before this connection."""
    ids: bool = False
    """Events with an id came, none of which settled anything."""
    messages: bool = False
    delivered: bool = False
    """An id or a message came that had not been seen before."""
    heartbeats: bool = False
    """Comments, or blocks without id and data, came."""
    barren_attempts: int = 0
    """Attempts in a row on this stream that delivered nothing new, before this one."""
    other_generation: bool = False
    resumable: bool = True
    """False for a stream that has no resumption at all (`listen`)."""


def judge_silence(seen: Silence) -> Verdict:
    """No evidence in time is `unproven`, with the reason that names what was missing."""
    return Verdict(Outcome.UNPROVEN, _what_was_missing(seen))


def _what_was_missing(seen: Silence) -> Reason:  # noqa: PLR0911 - a list of cases, in their order
    if seen.barren_attempts >= LOOP_LENGTH - 1 and not seen.delivered:
        return Reason.RECONNECT_LOOP
    if seen.other_generation:
        return Reason.GENERATION_CHANGED
    if not seen.resumable:
        return Reason.NOT_RESUMABLE
    if seen.token is None:
        return Reason.TOKEN_NOT_PRESENTED if seen.ids_before else Reason.NO_EVENT_IDS
    if seen.ids:
        return Reason.INCOMPARABLE_EVENT_ID
    if seen.messages:
        return Reason.NO_EVENT_IDS
    return Reason.HEARTBEAT_ONLY if seen.heartbeats else Reason.NO_REPLAY

"""The rule for people who resume streams themselves: a cursor that knows where it came from, and its check.

```python
cursor = StreamCursor(session_id="S1", last_event_id=4821)
...
verify_resumption(cursor, response.headers.get("mcp-session-id"), first_event.id)
```
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar, Union

from otel_mcp_resume.rules.terms import Generation, Outcome, Reason, Stream
from otel_mcp_resume.rules.verdict import EventEvidence, Verdict, judge_event, judge_session

__all__ = ["EventId", "OpenStream", "ResumptionGapError", "StreamCursor", "resume_stream", "verify_resumption"]

EventId = Union[int, str]
_FORMAT = "c1."
"""Marks the format, so that a later one can be told apart."""
T = TypeVar("T")

OpenStream = Callable[[Mapping[str, str]], Awaitable[tuple[str | None, AsyncIterable[tuple[EventId | None, T]]]]]
"""Sends the GET with these headers; returns the `Mcp-Session-Id` of the response and its events, each with the id
that was written on the wire for that very event (not the sticky one that SSE parsers report)."""


class ResumptionGapError(RuntimeError):
    """A stream did not go on where it was left. What was missed is gone; start a new session."""

    def __init__(self, message: str, reason: Reason) -> None:
        super().__init__(message)
        self.reason = reason
        """`session_changed`, `no_replay` or `event_id_regression`."""

    def __reduce__(self) -> tuple[type[ResumptionGapError], tuple[str, Reason]]:
        return type(self), (str(self), self.reason)


@dataclass(frozen=True, slots=True)
class StreamCursor:
    """A token bound to what it was received under. A bare token means nothing: `5` is valid in every session."""

    session_id: str | None
    """The `Mcp-Session-Id` under which the token was received; None if the server keeps no sessions."""
    last_event_id: EventId
    """The token: the id of the last event that was received."""
    stream: Stream = Stream.STANDALONE
    generation: Generation = Generation.STREAMABLE_HTTP
    endpoint: str | None = None
    """The URL that the stream was opened at, if it matters to the owner."""

    def __post_init__(self) -> None:
        """Raises TypeError for a token that is neither an int nor a str, ValueError for an empty one."""
        if not _as_text(self.last_event_id):
            raise ValueError("last_event_id is empty, and an empty token resumes nothing")

    def serialize(self) -> str:
        """The cursor as one opaque string of URL-safe ASCII, for wherever the application keeps its state.

        It holds the session id in the clear: keep it as you would keep that.
        """
        parts = [self.session_id, self.last_event_id, self.stream.value, self.generation.value, self.endpoint]
        text = json.dumps(parts, separators=(",", ":"))
        return _FORMAT + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def deserialize(cls, text: str) -> StreamCursor:
        """The cursor that `serialize` made a string of. Raises ValueError for any other string."""
        try:
            session_id, last_event_id, stream, generation, endpoint = _parts(text)
            return cls(_maybe(session_id), last_event_id, Stream(stream), Generation(generation), _maybe(endpoint))
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError("not a serialized StreamCursor") from error


def verify_resumption(
    cursor: StreamCursor, response_session_id: str | None, first_replayed_event_id: EventId | None
) -> Verdict:
    """Checks that a resumed stream goes on where `cursor` left it. Fails closed.

    `first_replayed_event_id` is the first id that the server wrote on the resumed stream, None if it wrote none.

    Returns `proven` if the ids can be compared and did not go back; `unproven` (`incomparable_event_id`) if
    they are opaque, as UUIDs are: then only the answer to the original request can prove anything.

    Raises ResumptionGapError if the response names another session, if no event was replayed, or if the id
    went back. TypeError for an id that is neither int nor str.

    It is the rule that the plugin applies to the session and the first id of a response.
    """
    token = _as_text(cursor.last_event_id)
    first = None if first_replayed_event_id is None else _as_text(first_replayed_event_id)
    _check_session(cursor, response_session_id)
    if not first:
        raise ResumptionGapError(
            f"no event was replayed after {token!r}, so nothing proves the resumption", Reason.NO_REPLAY
        )
    verdict = judge_event(EventEvidence(token=token, first_id=first, has_payload=True))
    if verdict is None:
        return Verdict(Outcome.UNPROVEN, Reason.INCOMPARABLE_EVENT_ID)
    if verdict.outcome is Outcome.GAP:
        raise ResumptionGapError(
            f"event id regressed: the cursor is at {token!r}, the first replayed event is {first!r}", verdict.reason
        )
    return verdict


def _check_session(cursor: StreamCursor, response_session_id: str | None) -> None:
    if changed := judge_session(cursor.session_id, response_session_id):
        raise ResumptionGapError(
            f"session changed: the cursor is of session {cursor.session_id!r}, "
            f"the response is of session {response_session_id!r}",
            changed.reason,
        )


async def resume_stream(cursor: StreamCursor, open_stream: OpenStream[T]) -> AsyncIterator[tuple[EventId | None, T]]:
    """Resumes a stream and hands out its events, none before the resumption is verified.

    The I/O is `open_stream`'s: it is given the headers to send. What it raises passes through.

    Raises what `verify_resumption` raises, before the first event.
    """
    headers = {"Last-Event-ID": _as_text(cursor.last_event_id)}
    if cursor.session_id is not None:
        headers["Mcp-Session-Id"] = cursor.session_id
    response_session_id, events = await open_stream(headers)
    _check_session(cursor, response_session_id)  # at once, for a stream of another session may stay silent
    verified = False
    async for event_id, event in events:
        if not verified:
            verify_resumption(cursor, response_session_id, event_id)
            verified = True
        yield event_id, event
    if not verified:
        verify_resumption(cursor, response_session_id, None)


def _parts(text: str) -> Any:
    form, encoded = text[: len(_FORMAT)], text[len(_FORMAT) :]
    if form != _FORMAT:
        raise ValueError(form)
    return json.loads(base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True))


def _maybe(part: Any) -> str | None:
    if part is None or isinstance(part, str):
        return part
    raise TypeError(repr(part))


def _as_text(event_id: object) -> str:
    if isinstance(event_id, bool) or not isinstance(event_id, (int, str)):
        raise TypeError(f"an event id is an int or a str, not {type(event_id).__name__}")
    return event_id if isinstance(event_id, str) else format(Decimal(event_id), "f")  # `str` refuses long integers

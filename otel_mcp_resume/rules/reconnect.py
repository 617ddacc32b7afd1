"""The decision on a token, and what is owed after it. Works on the memory of the log, under the log's lock.

Each server request is carried by one event at a time (MCP 2025-11-25: a message goes to one of the streams only).
A session resumption moves the unanswered ones to its fresh stream; the event that carried one before is void from
then on and no token brings it back. That of an answered request is void, too: it was received.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from otel_mcp_resume.rules.boundary_error import ResumptionBoundaryError, ResumptionProblem
from otel_mcp_resume.rules.event_token import parse_token
from otel_mcp_resume.rules.resumption import LoggedEvent, Resumption, ResumptionKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from otel_mcp_resume.rules.log_memory import Entry, Memory, SessionMemory, StreamMemory

__all__ = ["carry_requests", "resume_session", "resume_stream", "writable_stream"]

T = TypeVar("T")


def resume_stream(memory: Memory[T], session: SessionMemory[T], token: str, wanted: str | None) -> Resumption[T]:
    """What follows the token on its stream, all of it. Raises ResumptionBoundaryError if that can't be said."""
    stream, number = _place(memory, session, token, wanted)
    memory.use(session, stream)
    events = tuple(
        LoggedEvent(f"{stream.prefix}{entry.number}", entry.payload)
        for entry in stream.after(number)
        if not _is_void(session, stream, entry)
    )
    return Resumption(ResumptionKind.STREAM, session.session_id, stream.name, token, events, stream.finished)


def resume_session(memory: Memory[T], session: SessionMemory[T], connected: Collection[str]) -> Resumption[T]:
    """A fresh stream with the unanswered requests on it, but for those on streams that are still connected."""
    staying = {stream.ordinal for name, stream in session.streams.items() if name in connected}
    due = [
        key for key, request in session.pending.items() if request.carrier is None or request.carrier[0] not in staying
    ]
    stream = memory.add_stream(session, None)
    events = carry_requests(memory, session, stream, due)
    start = f"{stream.prefix}0"
    return Resumption(ResumptionKind.SESSION, session.session_id, stream.name, start, events, finished=False)


def carry_requests(
    memory: Memory[T], session: SessionMemory[T], stream: StreamMemory[T], keys: Iterable[str]
) -> tuple[LoggedEvent[T], ...]:
    """Puts pending requests on a stream, whatever carried them before."""
    events: list[LoggedEvent[T]] = []
    for key in keys:
        request = session.pending[key]
        entry = memory.add_entry(session, stream, request.payload, key)
        request.carrier = (stream.ordinal, entry.number)
        events.append(LoggedEvent(f"{stream.prefix}{entry.number}", entry.payload))
    return tuple(events)


def writable_stream(memory: Memory[T], session: SessionMemory[T], name: str) -> StreamMemory[T]:
    """The stream of that name, opened if need be. Raises ValueError if it can't take another event."""
    stream = session.streams.get(name)
    if stream is None:
        if name.startswith("~"):  # one of ours that is gone: its connection would not see the event under a new number
            raise ResumptionBoundaryError(ResumptionProblem.EVICTED, session_id=session.session_id)
        if not name:
            raise ValueError("a stream's name is not empty")
        return memory.add_stream(session, name)
    if stream.finished:
        raise ValueError("the last event of the stream was appended before")
    memory.use(session, stream)
    return stream


def _place(memory: Memory[T], session: SessionMemory[T], text: str, wanted: str | None) -> tuple[StreamMemory[T], int]:
    """The stream of a token, and where in it. Nothing that can't be placed for certain is placed at all."""
    token = parse_token(text)
    if token is None or token.tag != session.tag:
        foreign = token is not None and token.tag in memory.tags
        raise _refusal(
            ResumptionProblem.FOREIGN_SESSION_TOKEN if foreign else ResumptionProblem.UNKNOWN_TOKEN, session, text
        )
    if token.ordinal > session.opened:
        raise _refusal(ResumptionProblem.UNKNOWN_TOKEN, session, text)
    stream = session.by_ordinal.get(token.ordinal)
    if stream is None or token.number < stream.floor:
        raise _refusal(ResumptionProblem.EVICTED, session, text)
    if token.number > stream.issued:
        raise _refusal(ResumptionProblem.UNKNOWN_TOKEN, session, text)
    if wanted is not None and stream.name != wanted:
        raise _refusal(ResumptionProblem.FOREIGN_STREAM_TOKEN, session, text)
    return stream, token.number


def _refusal(problem: ResumptionProblem, session: SessionMemory[T], token: str) -> ResumptionBoundaryError:
    return ResumptionBoundaryError(problem, session_id=session.session_id, last_event_id=token)


def _is_void(session: SessionMemory[T], stream: StreamMemory[T], entry: Entry[T]) -> bool:
    if entry.request_key is None:
        return False
    request = session.pending.get(entry.request_key)
    return request is None or request.carrier != (stream.ordinal, entry.number)

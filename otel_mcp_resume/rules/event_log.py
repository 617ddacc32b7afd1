"""A log of what a server sent, by session and stream, and of the server requests that are not answered yet."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from otel_mcp_resume.rules.boundary_error import ResumptionBoundaryError, ResumptionProblem
from otel_mcp_resume.rules.event_token import new_tag
from otel_mcp_resume.rules.log_memory import LogLimits, Memory, Pending, SessionMemory
from otel_mcp_resume.rules.reconnect import carry_requests, resume_session, resume_stream, writable_stream
from otel_mcp_resume.rules.resumption import LoggedEvent, LogStats, RequestId, Resumption

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["PendingRequestLimitError", "StreamEventLog"]

T = TypeVar("T")

_SESSION_ID = re.compile(r"[\x21-\x7e]+")
"""Visible ASCII: MCP 2025-11-25, "Session Management"."""


class PendingRequestLimitError(RuntimeError):
    """A session has as many unanswered server requests as it may. The new one was not taken: none is ever dropped."""


class StreamEventLog(Generic[T]):
    """Remembers, in bounded memory, what a reconnecting client may ask for. `rules/boundary.py` shows its use.

    Payloads are whatever the server writes; the log never looks into them and never copies them. It issues all event
    ids itself: an id of the caller's own could not be told from one of another session, nor an evicted from an unknown.

    Thread-safe: each method is atomic under one lock, never waits for anything else, and calls nothing of the
    caller's. It may be used from any thread and any event loop, but knows one process only: where a server
    has several workers, a session must stay with its own.

    Eviction is oldest first: the session or stream that was not used for the longest time (a call that names a session
    uses it; appending to a stream and resuming it use the stream), the event that was appended first. A token is good
    as long as everything behind it is still there, and refused afterwards: a resumption is complete, or it is none.
    Unanswered server requests are evicted with their session only.

    Every method that names a session raises ResumptionBoundaryError (`unknown_session`) if the log doesn't know it.
    """

    def __init__(
        self,
        *,
        max_sessions: int = 10_000,
        max_streams: int = 20_000,
        max_streams_per_session: int = 1_000,
        max_events: int = 200_000,
        max_events_per_session: int = 10_000,
        max_pending_per_session: int = 100,
    ) -> None:
        """The limits are counts, not bytes. Raises ValueError for one below 1."""
        limits = LogLimits(
            sessions=max_sessions,
            streams=max_streams,
            streams_per_session=max_streams_per_session,
            events=max_events,
            events_per_session=max_events_per_session,
            pending_per_session=max_pending_per_session,
        )
        self._memory: Memory[T] = Memory(limits)
        self._lock = threading.Lock()

    def register_session(self, session_id: str) -> None:
        """Begins a session; call it when `initialize` is answered. May evict another.

        Raises ValueError if it is registered already (two clients would share it) or is no visible ASCII.
        """
        if not _SESSION_ID.fullmatch(session_id):
            raise ValueError("a session id consists of visible ASCII characters, and has at least one")
        with self._lock:
            if session_id in self._memory.sessions:
                raise ValueError("the session is registered already")
            self._memory.add_session(session_id, new_tag())

    def unregister_session(self, session_id: str) -> bool:
        """Ends a session and gives everything back. Whether there was one. Its tokens are unknown from now on."""
        with self._lock:
            known = session_id in self._memory.sessions
            if known:
                self._memory.drop_session(session_id)
            return known

    def check_session(self, session_id: str | None) -> None:
        """For any other request (POST, DELETE): raises ResumptionBoundaryError (`no_session`, `unknown_session`)."""
        if not session_id:
            raise ResumptionBoundaryError(ResumptionProblem.NO_SESSION)
        with self._lock:
            self._session(session_id)

    def open_stream(self, session_id: str, stream: str) -> str:
        """Opens a stream before its first event; returns the event id for a priming event.

        Name the stream of a request by more than the client's JSON-RPC id (`request:7`): a client chooses that freely.
        Raises ValueError if the stream is open already, or if the name is empty or begins with `~`.
        """
        with self._lock:
            session = self._session(session_id)
            if not stream or stream.startswith("~"):
                raise ValueError("a stream's name is not empty, and does not begin with '~'")
            if stream in session.streams:
                raise ValueError("the stream is open already")
            return f"{self._memory.add_stream(session, stream).prefix}0"

    def close_stream(self, session_id: str, stream: str) -> bool:
        """Forgets a stream and its events. Whether there was one. Its tokens are refused as `evicted` from now on.

        A client may be cut while it receives the last event: to say that a stream is finished, use `append(last=True)`.
        """
        with self._lock:
            session = self._session(session_id)
            known = session.streams.get(stream)
            if known is not None:
                self._memory.drop_stream(session, known)
            return known is not None

    def append(self, session_id: str, stream: str, payload: T, *, last: bool = False) -> str:
        """Logs an event of a stream, which it opens if need be, and returns its event id. Append first, then write.

        `last`: nothing will follow on this stream (the response to a request was sent). Raises ValueError if that was
        said before; ResumptionBoundaryError (`evicted`) if the stream was a fresh one of the log and is gone.
        """
        with self._lock:
            session = self._session(session_id)
            target = writable_stream(self._memory, session, stream)
            target.finished = last
            return f"{target.prefix}{self._memory.add_entry(session, target, payload, None).number}"

    def queue_server_request(
        self, session_id: str, request_id: RequestId, payload: T, *, stream: str | None = None
    ) -> str | None:
        """Holds a request of the server to the client (sampling, elicitation, roots, ping) until it is answered.

        With `stream` it is an event of that stream, and its event id is returned. Without, no stream carries it yet:
        `deliver_queued` or a session resumption will.

        Raises PendingRequestLimitError if too many are unanswered, ValueError if one of that id is, and what
        `append` raises.
        """
        with self._lock:
            session = self._session(session_id)
            key = str(request_id)
            if key in session.pending:
                raise ValueError("a server request of that id is still unanswered")
            if len(session.pending) >= self._memory.limits.pending_per_session:
                raise PendingRequestLimitError("too many server requests of the session are unanswered")
            target = None if stream is None else writable_stream(self._memory, session, stream)
            session.pending[key] = Pending(payload)
            return None if target is None else carry_requests(self._memory, session, target, [key])[0].event_id

    def mark_answered(self, session_id: str, request_id: RequestId) -> bool:
        """The client answered: the request is never delivered again, whatever the token. Whether it was pending."""
        with self._lock:
            return self._session(session_id).pending.pop(str(request_id), None) is not None

    def deliver_queued(self, session_id: str, stream: str) -> tuple[LoggedEvent[T], ...]:
        """Puts the requests that no stream carries yet on this one, and returns what to write.

        Call it whenever a stream that may carry them is connected again: a stream resumption leaves them alone.
        Raises what `append` raises.
        """
        with self._lock:
            session = self._session(session_id)
            queued = [key for key, request in session.pending.items() if request.carrier is None]
            if not queued:
                return ()
            target = writable_stream(self._memory, session, stream)
            return carry_requests(self._memory, session, target, queued)

    def resume(
        self,
        session_id: str,
        last_event_id: str | None = None,
        *,
        stream: str | None = None,
        connected: Collection[str] = (),
    ) -> Resumption[T]:
        """Rows one to three of the boundary; `handle_reconnect` describes them and the arguments."""
        with self._lock:
            session = self._session(session_id, last_event_id)
            if last_event_id:
                return resume_stream(self._memory, session, last_event_id, stream)
            return resume_session(self._memory, session, connected)

    def stats(self) -> LogStats:
        """Counts what is held. Takes time in proportion to the number of sessions."""
        with self._lock:
            memory = self._memory
            return LogStats(
                sessions=len(memory.sessions),
                streams=len(memory.streams),
                events=len(memory.entries),
                pending=sum(len(session.pending) for session in memory.sessions.values()),
                evicted_sessions=memory.evicted_sessions,
                evicted_streams=memory.evicted_streams,
                evicted_events=memory.evicted_events,
            )

    def close(self) -> None:
        """Ends all sessions. The log can be used again; no token of before is known to it."""
        with self._lock:
            for session_id in list(self._memory.sessions):
                self._memory.drop_session(session_id)

    def _session(self, session_id: str, last_event_id: str | None = None) -> SessionMemory[T]:
        session = self._memory.sessions.get(session_id)
        if session is None:
            raise ResumptionBoundaryError(
                ResumptionProblem.UNKNOWN_SESSION, session_id=session_id, last_event_id=last_event_id
            )
        self._memory.sessions.move_to_end(session_id)
        return session

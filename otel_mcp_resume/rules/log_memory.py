"""The bounded memory under the event log: sessions, their streams, the events of these. The oldest go first.

Every event is in three queues: that of its stream, that of its session, and that of the whole log. All are in order
of arrival, so the oldest event of a session or of the log is always the oldest of its stream, and eviction leaves no
hole inside a stream: what a stream still holds is everything after `floor`.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, fields
from itertools import islice
from typing import Generic, TypeVar

from otel_mcp_resume.rules.event_token import token_prefix

__all__ = ["Entry", "LogLimits", "Memory", "Pending", "SessionMemory", "StreamMemory"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LogLimits:
    """How much is remembered. Counts, not bytes: what a payload weighs is up to its owner."""

    sessions: int
    streams: int
    streams_per_session: int
    events: int
    events_per_session: int
    pending_per_session: int

    def __post_init__(self) -> None:
        for limit in fields(self):
            if getattr(self, limit.name) < 1:
                raise ValueError(f"max_{limit.name} is less than 1, and a log that may hold none is of no use")


@dataclass(slots=True, eq=False)
class Entry(Generic[T]):
    """One event of one stream."""

    number: int
    """Its place in the stream, from 1, without holes."""
    sequence: int
    """Its place in the whole log."""
    payload: T
    request_key: str | None
    """The JSON-RPC id of the server request that it carries, if it carries one."""


@dataclass(slots=True, eq=False)
class Pending(Generic[T]):
    """A server request that is not answered yet."""

    payload: T
    carrier: tuple[int, int] | None = None
    """Stream ordinal and number of the event that carries it to the client; None while it is only queued."""


class StreamMemory(Generic[T]):
    """One stream of one session. It knows its session by name only: a cycle would outlive its use until collected."""

    __slots__ = ("entries", "finished", "issued", "name", "ordinal", "prefix", "session_id")

    def __init__(self, session_id: str, name: str, ordinal: int, prefix: str) -> None:
        self.session_id = session_id
        self.name = name
        self.ordinal = ordinal
        """How many streams the session had opened with this one. Never used again in that session."""
        self.prefix = prefix
        """What stands before the number in its event ids."""
        self.entries: deque[Entry[T]] = deque()
        self.issued = 0
        """The number of its newest event."""
        self.finished = False

    @property
    def floor(self) -> int:
        """The number of the newest event that was evicted: what came after it is still here, all of it."""
        return self.issued - len(self.entries)

    def after(self, number: int) -> list[Entry[T]]:
        """The entries behind `number`, oldest first. Costs what it returns, not what the stream holds."""
        found = list(islice(reversed(self.entries), self.issued - number))
        found.reverse()
        return found


class SessionMemory(Generic[T]):
    """One session."""

    __slots__ = ("by_ordinal", "entries", "opened", "pending", "session_id", "streams", "tag")

    def __init__(self, session_id: str, tag: str) -> None:
        self.session_id = session_id
        self.tag = tag
        """What its event ids begin with. Random, so that no other session, process or restart can share it."""
        self.opened = 0
        """How many streams it has opened so far."""
        self.streams: OrderedDict[str, StreamMemory[T]] = OrderedDict()
        """In order of their last use."""
        self.by_ordinal: dict[int, StreamMemory[T]] = {}
        self.entries: OrderedDict[int, StreamMemory[T]] = OrderedDict()
        """The stream of each event, oldest first."""
        self.pending: dict[str, Pending[T]] = {}
        """By JSON-RPC id as text, in the order in which they were asked."""


class Memory(Generic[T]):
    """Holds at most what the limits say. Not thread-safe: the log takes a lock around it."""

    def __init__(self, limits: LogLimits) -> None:
        self.limits = limits
        self.sessions: OrderedDict[str, SessionMemory[T]] = OrderedDict()
        """In order of their last use."""
        self.tags: dict[str, str] = {}
        """The session that issues ids with a tag."""
        self.streams: OrderedDict[tuple[str, int], StreamMemory[T]] = OrderedDict()
        """By session and ordinal, in order of their last use."""
        self.entries: OrderedDict[int, StreamMemory[T]] = OrderedDict()
        """The stream of each event, oldest first."""
        self.evicted_sessions = self.evicted_streams = self.evicted_events = 0
        self._sequence = 0

    def add_session(self, session_id: str, tag: str) -> None:
        """The session that was not used for the longest time makes room."""
        while len(self.sessions) >= self.limits.sessions:
            self.drop_session(next(iter(self.sessions)))
            self.evicted_sessions += 1
        self.sessions[session_id] = SessionMemory(session_id, tag)
        self.tags[tag] = session_id

    def drop_session(self, session_id: str) -> None:
        session = self.sessions.pop(session_id)
        del self.tags[session.tag]
        for stream in list(session.streams.values()):
            self.drop_stream(session, stream)

    def add_stream(self, session: SessionMemory[T], name: str | None) -> StreamMemory[T]:
        """The stream that was not used for the longest time makes room. Without a name it gets one of the log's own."""
        while len(session.streams) >= self.limits.streams_per_session:
            self._evict_stream(next(iter(session.streams.values())))
        while len(self.streams) >= self.limits.streams:
            self._evict_stream(next(iter(self.streams.values())))
        session.opened += 1
        ordinal = session.opened
        stream = StreamMemory[T](session.session_id, name or f"~{ordinal}", ordinal, token_prefix(session.tag, ordinal))
        session.streams[stream.name] = session.by_ordinal[ordinal] = stream
        self.streams[session.session_id, ordinal] = stream
        return stream

    def drop_stream(self, session: SessionMemory[T], stream: StreamMemory[T]) -> None:
        for entry in stream.entries:
            del self.entries[entry.sequence]
            del session.entries[entry.sequence]
        del session.streams[stream.name]
        del session.by_ordinal[stream.ordinal]
        del self.streams[stream.session_id, stream.ordinal]

    def add_entry(
        self, session: SessionMemory[T], stream: StreamMemory[T], payload: T, request_key: str | None
    ) -> Entry[T]:
        """The oldest event of the session makes room, then the oldest of all."""
        while len(session.entries) >= self.limits.events_per_session:
            self._evict_event(next(iter(session.entries)))
        while len(self.entries) >= self.limits.events:
            self._evict_event(next(iter(self.entries)))
        self._sequence += 1
        stream.issued += 1
        entry = Entry(stream.issued, self._sequence, payload, request_key)
        stream.entries.append(entry)
        self.entries[entry.sequence] = session.entries[entry.sequence] = stream
        return entry

    def use(self, session: SessionMemory[T], stream: StreamMemory[T]) -> None:
        """Marks the stream as just used: it is the last to be evicted."""
        session.streams.move_to_end(stream.name)
        self.streams.move_to_end((stream.session_id, stream.ordinal))

    def _evict_stream(self, stream: StreamMemory[T]) -> None:
        self.evicted_events += len(stream.entries)
        self.evicted_streams += 1
        self.drop_stream(self.sessions[stream.session_id], stream)

    def _evict_event(self, sequence: int) -> None:
        stream = self.entries.pop(sequence)
        del self.sessions[stream.session_id].entries[sequence]
        stream.entries.popleft()
        self.evicted_events += 1

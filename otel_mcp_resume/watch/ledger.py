"""The server's bounded memory: per (session, stream), which messages were emitted, in order, and which were written.

Only what an event store keeps is remembered here: without a store no token can name an event, and a message is
either on its way or lost at once. Not thread-safe: the watch holds its lock around every call.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING

from otel_mcp_resume.rules.terms import Side, Stream
from otel_mcp_resume.watch.facts import Fact, LedgerEvicted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otel_mcp_resume.watch.server_account import SessionAccount
    from otel_mcp_resume.watch.server_exchange import Exchange

__all__ = ["PRIMING", "Entry", "Ledger", "StreamLedger", "Subject"]

SPARE = 256
"""One part in so many is evicted at a time, so that a full ledger does not pay for an eviction with every event."""
STALE = 1024
"""Entries of a queue that point to nothing any more and are still tolerated."""
SPARED = 64
"""Open streams that one eviction passes over before it gives up."""


class Subject:
    """What a message means beyond its place in the stream. Notifications mean nothing more, and have none."""

    __slots__ = ()

    def written(self, exchange: Exchange) -> Sequence[Fact]:  # noqa: ARG002 - for those that look at it
        """The message left through `exchange`."""
        return ()

    def lost(self) -> Sequence[Fact]:
        """The message can no longer reach the client."""
        return ()


PRIMING = Subject()
"""An event that has an id and no payload: a position in the stream, not a message."""


class Entry:
    """One message, or one priming event, from the router to the wire."""

    __slots__ = ("event_id", "seq", "stream", "subject", "written")

    def __init__(
        self, stream: StreamLedger | None, seq: int, event_id: str | None, subject: Subject | None
    ) -> None:
        self.stream = stream
        """None if nothing is remembered of it once it is written."""
        self.seq = seq
        """Its place in the order of all messages of the process, and so of its stream."""
        self.event_id = event_id
        self.subject = subject
        self.written = False
        """Whether it ever left through the `send` of a response."""


class StreamLedger:
    """The account of one logical stream of one session."""

    __slots__ = (
        "closed_at",
        "connections",
        "entries",
        "incomplete",
        "kind",
        "lost",
        "name",
        "opened",
        "parked",
        "seq",
        "session",
    )

    def __init__(self, session: SessionAccount, name: str, kind: Stream, seq: int) -> None:
        self.session = session
        self.name = name
        self.kind = kind
        self.seq = seq
        """The place of its latest event, or of its own beginning: its age, when something must be forgotten."""
        self.entries: deque[Entry] = deque()
        """What the store keeps of it, oldest first."""
        self.parked: dict[Entry, None] = {}
        """Messages that were never written and are on their way to no connection."""
        self.lost = 0
        """Messages counted as undelivered since the stream last went live."""
        self.incomplete = False
        """Whether a message that was never written had to be forgotten since the stream last went live."""
        self.opened = False
        """Whether a connection of it was accepted before."""
        self.connections = 0
        self.closed_at: float | None = None
        """When its last connection ended."""


class Ledger:
    """Every remembered event and stream of the process, within two limits. The oldest is forgotten first."""

    def __init__(self, max_streams: int, max_events: int) -> None:
        self.max_streams = max(1, max_streams)
        self.max_events = max(1, max_events)
        self.seq = 0
        """The place of the latest event. Only `append`, and the fast path of a session, move it."""
        self.events = 0
        self.streams = 0
        self._by_event: list[tuple[int, StreamLedger]] = []
        self._by_stream: list[tuple[int, StreamLedger]] = []

    def open(self, session: SessionAccount, name: str, kind: Stream) -> StreamLedger:
        """Begins the account of a stream."""
        self.seq += 1
        stream = StreamLedger(session, name, kind, self.seq)
        session.streams[name] = stream
        self.streams += 1
        heapq.heappush(self._by_stream, (stream.seq, stream))
        if len(self._by_stream) > 2 * self.streams + STALE:
            self._by_stream = sorted((s.seq, s) for _, s in self._by_stream if _is_current(s))
        return stream

    def append(
        self, stream: StreamLedger, event_id: str, subject: Subject | None, known: Entry | None = None
    ) -> Entry:
        """Enters what the store has just taken; `known` if it was replayed before. The caller evicts afterwards."""
        self.seq = seq = self.seq + 1
        if known is None:
            entry = Entry(stream, seq, event_id, subject)
        else:
            entry = known
            entry.stream, entry.seq, entry.subject = stream, seq, subject
        entries = stream.entries
        if not entries:
            self._enqueue(seq, stream)
        entries.append(entry)
        stream.seq = seq
        self.events += 1
        return entry

    def _enqueue(self, seq: int, stream: StreamLedger) -> None:
        heapq.heappush(self._by_event, (seq, stream))
        if len(self._by_event) > 2 * self.streams + STALE:
            self._by_event = sorted((s.entries[0].seq, s) for s in {s for _, s in self._by_event if s.entries})

    def evict(self) -> Sequence[Fact]:
        """Forgets the oldest until both limits hold."""
        dropped = self._evict_streams() if self.streams > self.max_streams else 0
        if self.events > self.max_events:
            dropped += self._evict_events()
        return (LedgerEvicted(Side.SERVER, dropped),) if dropped else ()

    def _evict_events(self) -> int:
        queue, dropped = self._by_event, 0
        target = self.max_events - self.max_events // SPARE
        while self.events > target and queue:
            seq, stream = queue[0]
            if not stream.entries:
                heapq.heappop(queue)
            elif stream.entries[0].seq != seq:
                heapq.heapreplace(queue, (stream.entries[0].seq, stream))
            else:
                self._forget(stream.entries.popleft())
                self.events -= 1
                dropped += 1
                if not stream.entries:
                    heapq.heappop(queue)  # it comes back with its next event
        return dropped

    def _evict_streams(self) -> int:
        queue, dropped, spared = self._by_stream, 0, 0
        while self.streams > self.max_streams and queue and spared < SPARED:
            seq, stream = heapq.heappop(queue)
            if not _is_current(stream):
                continue
            if stream.connections:  # what is open is no memory of the past, and counts as used just now
                self.seq += 1
                stream.seq = self.seq
                spared += 1
            if stream.seq != seq:
                heapq.heappush(queue, (stream.seq, stream))
                continue
            for entry in stream.entries:
                self._forget(entry)
            stream.session.is_complete = False
            self.release(stream)
            dropped += 1
        return dropped

    @staticmethod
    def _forget(entry: Entry) -> None:
        stream = entry.stream
        assert stream is not None
        session = stream.session
        session.is_complete = False
        if entry.event_id is not None and session.ids.get(entry.event_id) is entry:
            del session.ids[entry.event_id]
        if not entry.written and entry.subject is not PRIMING:
            stream.incomplete = True
            stream.parked.pop(entry, None)

    def release(self, stream: StreamLedger) -> None:
        """Gives everything back that was remembered of a stream."""
        if stream.session.streams.pop(stream.name, None) is None:
            return
        self.streams -= 1
        self.events -= len(stream.entries)
        stream.entries.clear()
        stream.parked.clear()


def _is_current(stream: StreamLedger) -> bool:
    return stream.session.streams.get(stream.name) is stream

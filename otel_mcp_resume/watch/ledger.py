"""The server's bounded memory: per (session, stream), which messages an event store keeps, in order, and which of them
were written.

Without a store nothing is remembered: no token can name an event, and a message is either on its way or lost at once.
An event is no object here but an id and a number: two hundred thousand objects would cost every garbage collection of
the application. Not thread-safe: the watch holds its lock around every call.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from otel_mcp_resume.rules.terms import Side, Stream
from otel_mcp_resume.watch.facts import Fact, LedgerEvicted
from otel_mcp_resume.watch.subjects import PRIMING, Subject

if TYPE_CHECKING:
    from otel_mcp_resume.watch.facts import Node
    from otel_mcp_resume.watch.server_account import SessionAccount

__all__ = ["Ledger", "StreamLedger"]

SPARE = 256
"""One part in so many is evicted at a time, so that a full ledger does not pay for an eviction with every event."""
STALE = 1024
"""Entries of a queue that point to nothing any more and are still tolerated."""
SPARED = 64
"""Streams in use that one eviction passes over before it gives up."""


class StreamLedger:
    """The account of one logical stream of one session."""

    __slots__ = (
        "closed_at",
        "connections",
        "cut",
        "events",
        "holders",
        "incomplete",
        "kind",
        "lost",
        "name",
        "opened",
        "parked",
        "seq",
        "session",
        "subjects",
    )

    def __init__(self, session: SessionAccount, name: str, kind: Stream, seq: int) -> None:
        self.session = session
        self.name = name
        self.kind = kind
        self.seq = seq
        """The place of its latest event, or of its own beginning: its age, when something must be forgotten."""
        self.events: dict[str, int] = {}
        """What the store keeps of it: each id, and its place in the order of all events of the process."""
        self.subjects: dict[str, Subject] = {}
        """The events that mean more than a notification."""
        self.parked: dict[str, int] = {}
        """Messages that were never written and are on their way to no connection."""
        self.lost = 0
        """Messages counted as undelivered since the stream last went live."""
        self.incomplete = False
        """Whether a message that was never written had to be forgotten since the stream last went live."""
        self.opened = False
        """Whether a connection of it was accepted before."""
        self.connections = 0
        """Open event streams of it."""
        self.holders = 0
        """Exchanges that have not ended and belong to it."""
        self.cut: Node | None = None
        """The latest connection of it."""
        self.closed_at: float | None = None
        """When its last connection ended."""

    def after(self, seq: int, until: int | None = None) -> list[str]:
        """The messages that come after `seq`, and not after `until`, oldest first. Priming events are none."""
        found: list[str] = []
        for event_id, place in reversed(self.events.items()):
            if place <= seq:
                break
            if (until is None or place <= until) and self.subjects.get(event_id) is not PRIMING:
                found.append(event_id)
        found.reverse()
        return found


class Ledger:
    """Every remembered event and stream of the process, within two limits. The oldest is forgotten first."""

    def __init__(self, max_streams: int, max_events: int) -> None:
        self.max_streams = max(1, max_streams)
        self.max_events = max(1, max_events)
        self.seq = 0
        """The place of the latest event."""
        self.events = 0
        self.streams = 0
        self._by_event: list[tuple[int, StreamLedger]] = []
        self._by_stream: list[tuple[int, StreamLedger]] = []

    def open(self, session: SessionAccount, name: str, kind: Stream) -> StreamLedger:
        """Begins the account of a stream. The caller evicts afterwards."""
        self.seq += 1
        stream = StreamLedger(session, name, kind, self.seq)
        session.streams[name] = stream
        self.streams += 1
        heapq.heappush(self._by_stream, (stream.seq, stream))
        if len(self._by_stream) > 2 * self.streams + STALE:
            self._by_stream = sorted((s.seq, s) for _, s in self._by_stream if _is_current(s))
        return stream

    def append(self, stream: StreamLedger, event_id: str) -> int:
        """Enters what the store has just taken, and gives its place. The caller evicts afterwards."""
        self.seq = seq = self.seq + 1
        events = stream.events
        if not events:
            self._enqueue(seq, stream)
        if events.pop(event_id, None) is None:
            self.events += 1
        events[event_id] = stream.seq = seq
        return seq

    def _enqueue(self, seq: int, stream: StreamLedger) -> None:
        heapq.heappush(self._by_event, (seq, stream))
        if len(self._by_event) > 2 * self.streams + STALE:
            self._by_event = sorted((_first(s), s) for s in {s for _, s in self._by_event if s.events})

    # -- forgetting ------------------------------------------------------------------------------

    def evict(self) -> Sequence[Fact]:
        """Forgets the oldest until both limits hold."""
        dropped = 0
        if self.streams > self.max_streams:
            dropped += self._evict_streams()
        if self.events > self.max_events:
            dropped += self._evict_events()
        return (LedgerEvicted(Side.SERVER, dropped),) if dropped else ()

    def _evict_events(self) -> int:
        queue, before = self._by_event, self.events
        target = self.max_events - self.max_events // SPARE
        while self.events > target and queue:
            seq, stream = queue[0]
            if not stream.events:
                heapq.heappop(queue)
                continue
            first = _first(stream)
            if first == seq:
                others = min(queue[1:3], default=(self.seq + 1, None))[0]
                self._forget_before(stream, others, self.events - target)
            if stream.events:
                heapq.heapreplace(queue, (_first(stream), stream))
            else:
                heapq.heappop(queue)  # it comes back with its next event
        return before - self.events

    def _forget_before(self, stream: StreamLedger, seq: int, count: int) -> None:
        """Forgets up to `count` events of a stream that are older than `seq`."""
        events, subjects, parked = stream.events, stream.subjects, stream.parked
        forgotten = [event_id for event_id, place in islice(events.items(), count) if place < seq]
        for event_id in forgotten:
            del events[event_id]
        self.events -= len(forgotten)
        stream.session.has_forgotten = True
        if subjects:
            for event_id in forgotten:
                subjects.pop(event_id, None)
        if parked:
            for event_id in forgotten:
                if parked.pop(event_id, None) is not None:
                    stream.incomplete = True

    def _evict_streams(self) -> int:
        queue, dropped, spared, latest = self._by_stream, 0, 0, self.seq
        while self.streams > self.max_streams and queue and spared < SPARED:
            seq, stream = heapq.heappop(queue)
            if not _is_current(stream):
                continue
            if stream.holders or stream.seq == latest:  # in use, so no memory of the past: it goes to the end
                self.seq += 1
                stream.seq = self.seq
                spared += 1
            if stream.seq != seq:
                heapq.heappush(queue, (stream.seq, stream))
                continue
            stream.session.has_forgotten = True
            self.release(stream)
            dropped += 1
        return dropped

    def release(self, stream: StreamLedger) -> None:
        """Gives everything back that was remembered of a stream."""
        if not _is_current(stream):
            return
        del stream.session.streams[stream.name]
        self.streams -= 1
        self.events -= len(stream.events)
        stream.events.clear()
        stream.subjects.clear()
        stream.parked.clear()


def _first(stream: StreamLedger) -> int:
    return next(iter(stream.events.values()))


def _is_current(stream: StreamLedger) -> bool:
    return stream.session.streams.get(stream.name) is stream

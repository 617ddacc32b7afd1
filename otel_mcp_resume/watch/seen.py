"""Bounded memory of the event ids of streams, and of what came under them.

A payload is remembered by its hash under the interpreter's random key: enough to tell two apart, and nothing of a
message can be got back from it.
"""

from __future__ import annotations

from collections import deque
from hashlib import blake2b

from otel_mcp_resume.rules.terms import DuplicateKind

__all__ = ["EVICTIONS_AT_ONCE", "LONG_ID", "EventMemory", "SeenIds", "short_key", "shortened"]

LONG_ID = 128
"""Characters. Of a longer id only the hash is kept, so that a hostile peer decides nothing about memory."""


def short_key(event_id: str) -> str | int:
    """What is remembered of an id: itself, or the hash of a long one."""
    return event_id if len(event_id) <= LONG_ID else hash(event_id)


def shortened(event_id: str) -> str:
    """The same for what is shown, too: a long id is known by its front and its hash."""
    if len(event_id) <= LONG_ID:
        return event_id
    # The same in every process, unlike `hash`: replicas show an id alike.
    digest = blake2b(event_id.encode("utf-8", "surrogatepass"), digest_size=8)
    return f"{event_id[:LONG_ID]}...{digest.hexdigest()}"


GONE_AT_ONCE = 64
"""Forgotten ids from which on their places are given back, if they are half of a stream's."""
EVICTIONS_AT_ONCE = 1000
"""Evictions after which an open stream reports them, rather than at its end."""


class EventMemory:
    """The budget that all streams of a process share. The oldest id goes first, whichever stream it is of.

    Streams of several event loops share it without a lock: a race can at worst miscount by one, and the limit is
    not that exact.
    """

    __slots__ = ("_limit", "_order", "evicted", "size")

    def __init__(self, limit: int) -> None:
        self._limit = max(1, limit)
        self._order: deque[SeenIds] = deque()
        self.size = 0
        self.evicted = 0
        """Ids dropped since the owner last looked and set it back."""

    def added(self, stream: SeenIds) -> None:
        """`stream` remembers one more id."""
        self._order.append(stream)
        self.size += 1
        if self.size > self._limit:
            self._shrink()

    def _shrink(self) -> None:
        while self.size > self._limit and self._order:
            if self._order.popleft().drop_oldest():
                self.size -= 1
                self.evicted += 1

    def released(self, count: int) -> None:
        """A stream is over and gave `count` ids back."""
        self.size -= count
        if len(self._order) > 64 and len(self._order) > 2 * self.size:
            # Entries of streams that are over would otherwise pile up where nothing is ever evicted.
            self._order = deque([stream for stream in list(self._order) if stream.open])


class SeenIds:
    """The ids of one stream."""

    __slots__ = ("_first", "_keys", "_memory", "_payloads", "open")

    def __init__(self, memory: EventMemory) -> None:
        self._memory = memory
        self._payloads: dict[str | int, int | None] = {}
        self._keys: list[str | int] = []
        """In their order: a dict that is asked for its first key walks over all that were deleted in front of it.
        A list, because an empty deque weighs as much as ten ids."""
        self._first = 0
        self.open = True

    def add(self, event_id: str, data: str | None) -> DuplicateKind | None:
        """Remembers an id. What it repeats, if it does.

        An event without data (a priming event) has no payload, so a message may carry its id without colliding.
        """
        return self.add_key(short_key(event_id), data)

    def add_key(self, key: str | int, data: str | None) -> DuplicateKind | None:
        """The same for the `short_key` of an id."""
        payload = hash(data) if data else None
        payloads = self._payloads
        if key not in payloads:
            if not self.open:
                return None  # nobody would ever give it back
            payloads[key] = payload
            self._keys.append(key)
            self._memory.added(self)
            return None
        if payload is None:
            return None
        known = payloads[key]
        if known is None:
            payloads[key] = payload
            return None
        return DuplicateKind.REDELIVERED if known == payload else DuplicateKind.COLLISION

    def __contains__(self, event_id: str) -> bool:
        return short_key(event_id) in self._payloads

    def __len__(self) -> int:
        return len(self._payloads)

    def drop_oldest(self) -> bool:
        """Forgets the id that was remembered first. Whether there was one."""
        keys, first = self._keys, self._first
        if first == len(keys):
            return False
        del self._payloads[keys[first]]
        self._first = first = first + 1
        if first >= GONE_AT_ONCE and 2 * first >= len(keys):
            del keys[:first]
            self._first = 0
        return True

    def close(self) -> None:
        """The stream is over: everything is given back at once."""
        self.open = False
        self._memory.released(len(self._payloads))
        self._payloads.clear()
        self._keys.clear()
        self._first = 0

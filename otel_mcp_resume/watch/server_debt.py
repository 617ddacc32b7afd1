"""What a resumed connection owes after its token, and what the event store hands over to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from otel_mcp_resume.rules.terms import Stream
from otel_mcp_resume.watch.ledger import PRIMING, Entry, StreamLedger

__all__ = ["Debt"]


class Debt:
    """The account of one connection against the ledger of its stream. Not thread-safe."""

    __slots__ = ("_began", "_latest", "_unnamed", "cursor", "disorder", "missing", "owed", "replayed")

    def __init__(self, cursor: Entry | None) -> None:
        self.cursor = cursor
        """The event that the token names, if the ledger of its session knows it."""
        self.replayed: dict[Entry, None] = {}
        """What the store handed over to this connection, written or not yet."""
        self.owed = 0
        """Messages after the token, once the window is closed."""
        self.missing = 0
        """Those of them that the store did not hand over."""
        self.disorder = 0
        """Messages that the store handed over after a later one."""
        self._began: int | None = None
        self._latest = 0
        self._unnamed: Iterator[Entry] | None = None

    @property
    def stream(self) -> StreamLedger | None:
        """The stream that the token belongs to."""
        return None if self.cursor is None else self.cursor.stream

    @property
    def kind(self) -> Stream:
        """A token that can't be placed is reported under `standalone`."""
        return Stream.STANDALONE if self.stream is None else self.stream.kind

    def begin(self, seq: int) -> None:
        """The store begins to replay; `seq` is the place of the latest event of the process."""
        if self._began is None:
            self._began = seq

    def hand_over(self, entry: Entry) -> None:
        """The store hands an event over."""
        if entry in self.replayed:
            return
        self.replayed[entry] = None
        if self.cursor is None or entry.stream is not self.stream:
            return
        if self.cursor.seq < entry.seq < self._latest:
            self.disorder += 1
        self._latest = max(self._latest, entry.seq)

    def next_unnamed(self) -> Entry | None:
        """Which event a store means that replays without ids: the next one that is owed."""
        if self._unnamed is None:
            self._unnamed = iter(self._after_cursor(None))
        return next(self._unnamed, None)

    def close(self, *, live: bool) -> None:
        """The window is closed.

        A connection that goes live owes all that was emitted by now. One that never does (because an older one is
        still open, or the store knows nothing) owes what was there when the replay began: the rest goes elsewhere.
        """
        owed = self._after_cursor(None if live else self._began)
        self.owed = len(owed)
        self.missing = sum(entry not in self.replayed for entry in owed)

    def unwritten(self, queue: Collection[Entry], *, closed: bool) -> int:
        """How many messages are owed that did not reach the wire; `queue` holds those on their way."""
        waiting = set(queue)
        owed = self._after_cursor(self._began if closed else None)
        self.owed = len(owed)
        return sum(entry not in self.replayed or entry in waiting for entry in owed)

    def settle(self) -> None:
        """The account is closed. Only what the store has not told the place of yet may still come twice."""
        self.replayed = {entry: None for entry in self.replayed if entry.stream is None}
        self._unnamed = None

    def _after_cursor(self, until: int | None) -> list[Entry]:
        cursor, stream = self.cursor, self.stream
        found: list[Entry] = []
        if cursor is None or stream is None:
            return found
        for entry in reversed(stream.entries):
            if entry.seq <= cursor.seq:
                break
            if entry.subject is not PRIMING and (until is None or entry.seq <= until):
                found.append(entry)
        found.reverse()
        return found

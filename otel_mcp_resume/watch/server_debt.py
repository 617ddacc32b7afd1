"""What a resumed connection owes after its token, and what the event store hands over to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from otel_mcp_resume.rules.terms import Stream
from otel_mcp_resume.watch.ledger import StreamLedger

__all__ = ["Cursor", "Debt"]


class Cursor(NamedTuple):
    """The place in the ledger that a token names."""

    stream: StreamLedger
    seq: int


class Debt:
    """The account of one connection against the ledger of its stream. Not thread-safe."""

    __slots__ = ("_began", "_latest", "_unnamed", "cursor", "disorder", "missing", "owed", "replayed")

    def __init__(self, cursor: Cursor | None) -> None:
        self.cursor = cursor
        """None if the ledger of the session doesn't know the token, or there is none."""
        self.replayed: dict[str, None] = {}
        """The events of the resumed stream that the store handed over, written or not yet."""
        self.owed = 0
        """Messages after the token, once the window is closed."""
        self.missing = 0
        """Those of them that the store did not hand over."""
        self.disorder = 0
        """Messages that the store handed over after a later one."""
        self._began: int | None = None
        self._latest = 0
        self._unnamed: Iterator[str] | None = None

    @property
    def stream(self) -> StreamLedger | None:
        """The stream that the token belongs to."""
        return None if self.cursor is None else self.cursor.stream

    @property
    def kind(self) -> Stream:
        """A token that can't be placed is reported under `standalone`."""
        return Stream.STANDALONE if self.cursor is None else self.cursor.stream.kind

    def begin(self, seq: int) -> None:
        """The store begins to replay; `seq` is the place of the latest event of the process."""
        if self._began is None:
            self._began = seq

    def hand_over(self, event_id: str, seq: int) -> None:
        """The store hands over an event of the resumed stream."""
        if self.cursor is None or event_id in self.replayed:
            return
        self.replayed[event_id] = None
        if self.cursor.seq < seq < self._latest:
            self.disorder += 1
        self._latest = max(self._latest, seq)

    def next_unnamed(self) -> str | None:
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
        self.missing = sum(event_id not in self.replayed for event_id in owed)

    def unwritten(self, waiting: Collection[str], *, closed: bool) -> int:
        """How many messages are owed that did not reach the wire; `waiting` are those on their way."""
        owed = self._after_cursor(self._began if closed else None)
        self.owed = len(owed)
        return sum(event_id not in self.replayed or event_id in waiting for event_id in owed)

    def settle(self) -> None:
        """The account is closed."""
        self.replayed.clear()
        self._unnamed = None

    def _after_cursor(self, until: int | None) -> list[str]:
        return [] if self.cursor is None else self.cursor.stream.after(self.cursor.seq, until)

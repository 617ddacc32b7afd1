"""The server side of a process: its sessions and exchanges, and what they share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from otel_mcp_resume.rules.terms import Generation, Stream
from otel_mcp_resume.watch.calls import CallBook, Tools
from otel_mcp_resume.watch.ledger import Ledger
from otel_mcp_resume.watch.pending import PendingBook
from otel_mcp_resume.watch.server_exchange import Exchange
from otel_mcp_resume.watch.server_request import End, Request
from otel_mcp_resume.watch.server_session import Session
from otel_mcp_resume.watch.server_state import ServerState

if TYPE_CHECKING:
    from otel_mcp_resume.watch.deadlines import Deadlines
    from otel_mcp_resume.watch.facts import Fact

__all__ = ["End", "Exchange", "Limits", "Request", "ServerWatch", "Session"]


class Limits(Protocol):
    """How much may be remembered, in all."""

    @property
    def max_streams(self) -> int:
        """Streams whose account is kept."""
        ...

    @property
    def max_events(self) -> int:
        """Events of event stores whose ids are kept."""
        ...


class ServerWatch:
    """Thread-safe: every session and exchange takes one lock around what it remembers, and returns facts."""

    def __init__(
        self,
        *,
        emit: Callable[[Iterable[Fact]], None],
        events: Callable[[Generation, Stream], Callable[[], None]],
        deadlines: Deadlines,
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`emit` takes facts that are born in the deadline thread; `events` gives the counter of a connection."""
        self._state = ServerState(
            emit=emit,
            events=events,
            deadlines=deadlines,
            clock=clock,
            ledger=Ledger(limits.max_streams, limits.max_events),
            pending=PendingBook(limits.max_events),
            calls=CallBook(clock),
        )

    def session(
        self,
        session_id: str | None,
        *,
        standalone: str,
        generation: Generation = Generation.STREAMABLE_HTTP,
        is_stored: bool = False,
        is_json: bool = False,
        is_blind: bool = False,
    ) -> Session:
        """A transport begins. `standalone` names its stream that belongs to no request."""
        return Session(
            self._state,
            generation,
            session_id,
            standalone=standalone,
            is_stored=is_stored,
            is_json=is_json,
            is_blind=is_blind,
        )

    def exchange(
        self, request: Request, generation: Generation = Generation.STREAMABLE_HTTP, tools: Tools | None = None
    ) -> Exchange:
        """A request came in; `tools` are those of the application that it is for."""
        return Exchange(self._state, generation, request, tools)

    def oldest_pending(self) -> Mapping[Generation, float]:
        """The age in seconds of the oldest unanswered server request, for the generations that have one."""
        with self._state.lock:
            return self._state.pending.oldest(self._state.clock())

    @property
    def remembered(self) -> tuple[int, int]:
        """How many streams and events the ledger holds."""
        return self._state.ledger.streams, self._state.ledger.events

    def after_fork(self) -> None:
        """In a forked child no thread holds the lock that the parent's may have held."""
        self._state.lock = threading.Lock()

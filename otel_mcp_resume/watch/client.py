"""The client side of a process: its transports, and what outlives them."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from otel_mcp_resume.rules.terms import Generation, Side, Stream, ViolationRule
from otel_mcp_resume.watch.client_stream import ClientStream
from otel_mcp_resume.watch.cursors import CursorMemory, Received
from otel_mcp_resume.watch.facts import Fact, LedgerEvicted, Violated
from otel_mcp_resume.watch.repeats import UnansweredCalls
from otel_mcp_resume.watch.seen import EventMemory, short_key
from otel_mcp_resume.watch.transport import ClientTransport

if TYPE_CHECKING:
    from otel_mcp_resume.watch.attempt import Attempt
    from otel_mcp_resume.watch.connection import Connection
    from otel_mcp_resume.watch.deadlines import Deadlines

__all__ = ["ClientTransport", "ClientWatch", "Limits"]

DEAD_SESSIONS = 4096
"""Sessions that answered 404, of which a further use would be a violation. The oldest is forgotten first."""


class Limits(Protocol):
    """How much may be remembered, in all."""

    @property
    def max_streams(self) -> int:
        """Ended streams whose last token is kept."""
        ...

    @property
    def max_events(self) -> int:
        """Event ids kept to recognise repetitions."""
        ...


class ClientWatch:
    """What all clients of a process share. `lock` guards every attempt, since deadlines come from another thread."""

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
        self.events = events
        self.deadlines = deadlines
        self.clock = clock
        self._emit = emit
        self._limits = limits
        self._start_empty()

    def _start_empty(self) -> None:
        self.lock = threading.RLock()
        self.calls = UnansweredCalls(self.clock)
        self.memory = EventMemory(self._limits.max_events)
        self.streams: set[ClientStream] = set()
        self.listens: dict[str, ClientStream] = {}
        """The subscriptions, by their request ids: the SDK numbers those of all clients of a process in one row."""
        self._cursors = CursorMemory(self._limits.max_streams)
        self._dead: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._open: dict[int, tuple[Attempt, Connection]] = {}

    def after_fork(self) -> None:
        """In a forked child no thread holds a lock that one of the parent's may have held."""
        self._start_empty()

    def transport(self, url: str) -> ClientTransport:
        """A client transport at `url` begins."""
        return ClientTransport(self, url)

    def legacy_transport(self, url: str) -> ClientTransport:
        """The same of HTTP+SSE."""
        return ClientTransport.legacy(self, url)

    # -- attempts --------------------------------------------------------------------------------

    def opened(self, attempt: Attempt, connection: Connection) -> None:
        """An attempt waits for its evidence. Holds the lock."""
        self._open[id(attempt)] = attempt, connection
        self.deadlines.add(attempt)

    def settled(self, attempt: Attempt) -> None:
        """An attempt has its verdict. Holds the lock."""
        self._open.pop(id(attempt), None)
        self.deadlines.forget(attempt)

    def expired(self, attempt: Attempt) -> None:
        """The proof timeout passed without evidence. Called from the deadline thread."""
        with self.lock:
            waiting = self._open.get(id(attempt))
            facts = waiting[1].silent(attempt) if waiting else []
        self._emit(facts)

    def listen_lost(self, request_id: str) -> None:
        """The SDK told the application that a subscription is lost: its backlog is full, or the server took it back."""
        with self.lock:
            stream = self.listens.get(request_id)
            if stream is not None and stream.opened:
                stream.lost = True

    # -- what outlives a transport ---------------------------------------------------------------

    def received(self, origin: str, token: str, session_id: str | None) -> Received | None:
        """What a token that no stream of its own knows was received under. Holds the lock."""
        for stream in self.streams:  # an application may show a token before the stream that gave it has ended
            if stream.transport.origin == origin and stream.session_id == session_id and token in stream.seen:
                return Received(stream.session_id, stream.generation, stream.kind, stream.request_id)
        return self._cursors.find(origin, token, session_id)

    def keep_cursor(self, stream: ClientStream, key: str | int, connection: Connection) -> None:
        """Remembers the last token of a connection that ended, by its `short_key`. Holds the lock."""
        self._cursors.keep(
            stream.transport.origin,
            key,
            Received(stream.session_id, stream.generation, stream.kind, connection.request_id),
        )

    def binding(self, token: str) -> tuple[str, Received] | None:
        """Where a token was received, and under what; None if this process doesn't know. For applications that ask."""
        with self.lock:
            for stream in self.streams:
                if token in stream.seen:
                    kind, request_id = stream.kind, stream.request_id
                    received = Received(stream.session_id, stream.generation, kind, request_id)
                    return stream.transport.origin, received
            return self._cursors.everywhere(token)

    def recall(self, origin: str, token: str, received: Received) -> None:
        """The application says what a token was received under, in an earlier process."""
        with self.lock:
            self._cursors.keep(origin, short_key(token), received)

    def session_began(self, origin: str, session_id: str) -> None:
        """A session was initialised in this process, so it is alive, whatever was said of its name. Holds the lock."""
        self._dead.pop((origin, session_id), None)
        self._cursors.initialised(origin, session_id)

    def session_died(self, origin: str, session_id: str | None) -> None:
        """The server said 404 to a session. Holds the lock."""
        if session_id is None:
            return
        self._dead[origin, session_id] = None
        if len(self._dead) > DEAD_SESSIONS:
            self._dead.popitem(last=False)

    def session_used(self, transport: ClientTransport, session_id: str | None, method: str | None) -> Sequence[Fact]:
        """A POST goes out under a session. One that was answered 404 is no longer there.

        A cancellation is a courtesy of the SDK for a call that is over anyway.
        """
        if session_id is None or method == "notifications/cancelled":
            return ()
        with self.lock:
            if (transport.origin, session_id) not in self._dead:
                return ()
        rule = ViolationRule.STALE_SESSION
        return (Violated(Side.CLIENT, transport.generation, rule, None, None, transport.session_context(session_id)),)

    def session_lives(self, origin: str, session_id: str | None) -> None:
        """A POST under the session was accepted: the 404 came from a server that didn't know it, another one does."""
        if session_id is not None and self._dead:
            with self.lock:
                self._dead.pop((origin, session_id), None)

    def evictions(self) -> Sequence[Fact]:
        """What had to be forgotten since the last call."""
        if not self.memory.evicted and not self._cursors.evicted:
            return ()
        with self.lock:
            count = self.memory.evicted + self._cursors.evicted
            self.memory.evicted = self._cursors.evicted = 0
        return (LedgerEvicted(Side.CLIENT, count),) if count else ()

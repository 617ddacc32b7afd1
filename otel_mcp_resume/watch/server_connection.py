"""What a message of a server passes on its way to the wire: the queue of one response, and its bookkeeping."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from otel_mcp_resume.rules.terms import Generation, Side, Stream
from otel_mcp_resume.watch.facts import Fact, Node, StreamReopened
from otel_mcp_resume.watch.ledger import StreamLedger
from otel_mcp_resume.watch.server_attempt import ServerAttempt
from otel_mcp_resume.watch.server_writing import Replayed, written_from_router, written_from_store
from otel_mcp_resume.watch.subjects import Subject

if TYPE_CHECKING:
    from otel_mcp_resume.watch.calls import Call, Tools
    from otel_mcp_resume.watch.server_account import SessionAccount
    from otel_mcp_resume.watch.server_debt import Cursor
    from otel_mcp_resume.watch.server_request import Request
    from otel_mcp_resume.watch.server_state import ServerState

__all__ = ["NOTE", "ServerConnection"]

NOTE = Subject()
"""Stands for any notification of a server without an event store: nothing of it is remembered."""


_NONE: frozenset[str] = frozenset()  # each empty one would be another object


class ServerConnection:
    """One response. A message on its way to the wire passes `wrote`, and nothing else."""

    __slots__ = (
        "_count",
        "_state",
        "attempt",
        "calls",
        "doubled",
        "events",
        "generation",
        "is_answered",
        "is_foreign",
        "is_open",
        "is_over",
        "is_plain",
        "kind",
        "live",
        "node",
        "queue",
        "replay",
        "request",
        "session",
        "started",
        "status",
        "strays",
        "stream",
        "tools",
    )

    def __init__(self, state: ServerState, generation: Generation, request: Request, tools: Tools | None) -> None:
        self._state = state
        self._count: Callable[[], None] | None = None
        self.generation = generation
        self.request = request
        self.tools = tools
        self.started = state.clock()
        self.status: int | None = None
        self.session: SessionAccount | None = None
        self.stream: StreamLedger | None = None
        self.kind: Stream | None = None
        self.node: Node | None = None
        """The connection, once it is one."""
        self.attempt: ServerAttempt | None = None
        self.calls: Sequence[Call] = ()
        """The calls whose answers this connection is expected to carry."""
        self.events = 0
        self.live: StreamLedger | None = None
        """The stream whose live messages come here, if a store keeps them."""
        self.queue: deque[str | Subject] | None = None
        """The live messages on their way to this connection, in order: ids of the store, or what they mean. Most
        connections carry none for most of their lives, and an empty deque weighs as much as all the rest."""
        self.replay: deque[Replayed] | None = None
        """The events of the store on their way to it. They come first."""
        self.strays: dict[str, None] = {}
        """Events that were written before the store told whether they belong to this session."""
        self.doubled: frozenset[str] = _NONE
        """Events that come from the store and live as well."""
        self.is_open = False
        """Whether it is an event stream that has not ended yet."""
        self.is_over = False
        self.is_answered = False
        """Whether the response to its request was written."""
        self.is_foreign = False
        """Whether it goes on with another stream than the one it resumed."""
        self.is_plain = True
        """Whether nothing about it is under judgement: a message only needs to be taken off the queue."""

    @property
    def age(self) -> float:
        """Seconds since the request came in."""
        return max(0.0, self._state.clock() - self.started)

    def hold(self, stream: StreamLedger) -> None:
        """The exchange belongs to `stream`. Holds the lock."""
        self.stream = stream
        stream.holders += 1

    def begin_attempt(self, cursor: Cursor | None) -> ServerAttempt:
        """A stream is opened again. Holds the lock. None for a token that the session's ledger doesn't know."""
        self.attempt = ServerAttempt(self, self._state, cursor)
        self.is_plain = False
        return self.attempt

    def join(self, stream: StreamLedger, kind: Stream) -> Sequence[Fact]:
        """The connection is one of `stream` from now on. Holds the lock."""
        downtime = None
        if not stream.connections and stream.closed_at is not None:
            downtime = max(0.0, self.started - stream.closed_at)
        stream.connections += 1
        stream.opened = True
        stream.cut = self.node
        if self.attempt is None or downtime is None:
            return ()
        self.attempt.downtime = downtime
        return (StreamReopened(Side.SERVER, self.generation, kind, downtime, self.attempt.node),)

    # -- messages --------------------------------------------------------------------------------

    def wrote(self) -> Sequence[Fact]:
        """One message left through `send`. The path of every message: keep it short.

        Without the lock, as long as the exchange is plain: nobody but its own event loop looks at it then.
        """
        if self._count is not None:
            self._count()
        self.events += 1
        if self.replay:
            with self._state.lock:
                return written_from_store(self, self.replay.popleft())
        if not self.queue:
            return ()
        item = self.queue.popleft()
        if item is NOTE:
            return ()
        live = self.live
        if self.is_plain and live is not None and not live.parked and item not in live.subjects:
            return ()
        with self._state.lock:
            return written_from_router(self, item)

    def route(self, item: str | Subject) -> None:
        """A live message is on its way to this connection."""
        if self.queue is None:
            self.queue = deque()
        self.queue.append(item)

    def primed(self, event_id: str) -> Sequence[Fact]:
        """An event with an id and no payload left through `send`."""
        with self._state.lock:
            if self.attempt is None or self.attempt.is_settled:
                return ()
            return self.attempt.note_id(event_id)

    def bind(self, session: SessionAccount, stream: StreamLedger | None, kind: Stream) -> Sequence[Fact]:
        """Live messages of `stream` go here from now on. Holds the lock. Without a store a request has no account."""
        facts: Sequence[Fact] = ()
        self.live = stream if session.is_stored else None
        if self.kind is None:
            self.kind = kind
        if self.stream is None and stream is not None:
            self.hold(stream)
            if self.is_open:
                facts = self.join(stream, kind)
        elif stream is not self.stream and self.attempt is not None:
            self.is_foreign = self.attempt.debt.cursor is not None
        return facts

    def expect_replay(self) -> ServerAttempt:
        """A store replays here. Holds the lock. What it replays is watched even if nothing is resumed."""
        self.is_plain = False
        if self.attempt is None:
            attempt = self.begin_attempt(None)
            attempt.is_settled = True
            return attempt
        return self.attempt

    def replaying(self) -> deque[Replayed]:
        """The queue of a replay, which most connections never have. Holds the lock."""
        if self.replay is None:
            self.replay = deque()
        return self.replay

    def refresh(self) -> None:
        """Looks again whether anything is under judgement. Holds the lock."""
        attempt = self.attempt
        is_judged = attempt is None or attempt.is_settled
        self.is_plain = is_judged and not self.replay and not self.doubled and not self.is_foreign
        if self.is_plain and attempt is not None:
            attempt.debt.settle()

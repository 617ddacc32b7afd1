"""One HTTP exchange of a server, and the SSE connection that it may become."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from otel_mcp_resume.rules.terms import Disconnect, Generation, Side, Stream
from otel_mcp_resume.watch.facts import Fact, Node, StreamClosed, StreamReopened
from otel_mcp_resume.watch.ledger import StreamLedger
from otel_mcp_resume.watch.server_attempt import ServerAttempt
from otel_mcp_resume.watch.server_request import Request
from otel_mcp_resume.watch.server_story import attempt_begun, stream_opened
from otel_mcp_resume.watch.server_writing import Replayed, written_from_router, written_from_store
from otel_mcp_resume.watch.subjects import Subject

if TYPE_CHECKING:
    from otel_mcp_resume.watch.calls import Call, Tools
    from otel_mcp_resume.watch.server_account import SessionAccount
    from otel_mcp_resume.watch.server_debt import Cursor
    from otel_mcp_resume.watch.server_request import End
    from otel_mcp_resume.watch.server_state import ServerState

__all__ = ["NOTE", "Exchange"]

NOTE = Subject()
"""Stands for any notification of a server without an event store: nothing of it is remembered."""


class Exchange:
    """From a request to the end of its response. A message on its way to the wire passes `wrote`, and nothing else."""

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
        self.calls: list[Call] = []
        """The calls whose answers this connection is expected to carry."""
        self.events = 0
        self.live: StreamLedger | None = None
        """The stream whose live messages come here, if a store keeps them."""
        self.queue: deque[str | Subject] = deque()
        """The live messages on their way to this connection, in order: ids of the store, or what they mean."""
        self.replay: deque[Replayed] = deque()
        """The events of the store on their way to it. They come first."""
        self.strays: dict[str, None] = {}
        """Events that were written before the store told whether they belong to this session."""
        self.doubled: set[str] = set()
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

    @classmethod
    def unseen(cls, state: ServerState, generation: Generation) -> Exchange:
        """Stands for a connection whose request was not seen: what goes there is taken for delivered."""
        exchange = cls(state, generation, Request(""), None)
        exchange.queue = deque(maxlen=0)
        return exchange

    def serve(self, session: SessionAccount) -> None:
        """The exchange belongs to `session`. Holds the lock. Later calls change nothing."""
        if self.session is not None or self.is_over or session.is_finished:
            return
        self.session = session
        self.generation = session.generation
        session.serving += 1
        if self.tools is not None:
            session.tools = self.tools
        if self.request.method == "DELETE":
            session.is_leaving = True
        elif self.request.method == "GET":
            self._place(session)

    def _place(self, session: SessionAccount) -> None:
        """Finds the stream that a GET opens, and whether that is a re-opening."""
        token = self.request.token
        if token is None:
            stream = session.standalone_stream()
            self._hold(stream)
            self.kind = stream.kind
            if stream.opened:
                self._attempt(None)
            return
        cursor = session.find(token)
        self.kind = session.kind_of(session.standalone)
        if cursor is not None:
            self._hold(cursor.stream)
            self.kind = cursor.stream.kind
        self._attempt(cursor)

    def _hold(self, stream: StreamLedger) -> None:
        self.stream = stream
        stream.holders += 1

    @property
    def age(self) -> float:
        """Seconds since the request came in."""
        return max(0.0, self._state.clock() - self.started)

    def _attempt(self, cursor: Cursor | None) -> ServerAttempt:
        self.attempt = ServerAttempt(self, self._state, cursor)
        self.is_plain = False
        return self.attempt

    # -- the response ----------------------------------------------------------------------------

    def head(self, status: int, *, event_stream: bool, session_id: str | None) -> Sequence[Fact]:
        """The response begins. `session_id` is what its header names."""
        with self._state.lock:
            self.status = status
            if self.request.token is None and status == 409:  # the stream that it asked for is still open
                self.attempt = None
            attempt = self._late_attempt()
            facts: list[Fact] = [] if attempt is None else list(attempt_begun(self, attempt))
            if 200 <= status < 300:
                facts += self._accepted(event_stream=event_stream, session_id=session_id)
            elif self.session is not None and self.request.method == "DELETE":
                self.session.is_leaving = False
            facts += self._state.ledger.evict()
            if attempt is None or attempt.is_settled:
                return facts
            if self.generation is Generation.STATELESS:
                return [*facts, *attempt.not_resumable(status)]
            return [*facts, *attempt.answered(status, event_stream=event_stream, session_id=session_id)]

    def _accepted(self, *, event_stream: bool, session_id: str | None) -> Sequence[Fact]:
        facts: list[Fact] = []
        if self.session is not None:
            facts += self.session.accepted(self, session_id)
        if not event_stream or self.request.method not in ("GET", "POST"):
            return facts
        if self.kind is None:
            listening = self.request.rpc_method == "subscriptions/listen"
            self.kind = Stream.LISTEN if listening else Stream.REQUEST
        self.is_open = True
        self._count = self._state.events(self.generation, self.kind)
        self.node = Node()
        facts.append(stream_opened(self, self.kind, self.node))
        if self.stream is not None:
            facts += self._join(self.stream, self.kind)
        return facts

    def _join(self, stream: StreamLedger, kind: Stream) -> Sequence[Fact]:
        """The connection is one of `stream` from now on."""
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

    def _late_attempt(self) -> ServerAttempt | None:
        """The attempt of this exchange, also if no session took it."""
        if self.attempt is None and self.request.token is not None:
            resumes = self.request.method == "GET"
            if resumes or (self.generation is Generation.STATELESS and self.request.method == "POST"):
                return self._attempt(None)
        return self.attempt

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
        if self.stream is None and stream is not None and self.request.token is None:
            self._hold(stream)
            if self.is_open:
                facts = self._join(stream, kind)
        elif stream is not self.stream and self.attempt is not None:
            self.is_foreign = self.attempt.debt.cursor is not None
        return facts

    def expect_replay(self) -> ServerAttempt:
        """A store replays here. Holds the lock. What it replays is watched even if nothing is resumed."""
        self.is_plain = False
        if self.attempt is None:
            attempt = self._attempt(None)
            attempt.is_settled = True
            return attempt
        return self.attempt

    def refresh(self) -> None:
        """Looks again whether anything is under judgement. Holds the lock."""
        attempt = self.attempt
        is_judged = attempt is None or attempt.is_settled
        self.is_plain = is_judged and not self.replay and not self.doubled and not self.is_foreign
        if self.is_plain and attempt is not None:
            attempt.debt.settle()

    # -- the end ---------------------------------------------------------------------------------

    def ended(self, end: End) -> Sequence[Fact]:
        """The application is done with the exchange. Nothing of it is remembered afterwards."""
        with self._state.lock:
            facts: list[Fact] = []
            attempt = self._late_attempt()
            if attempt is not None:
                facts += [*attempt_begun(self, attempt), *attempt.ended()]
            if self.stream is not None:
                self.stream.holders -= 1
            if self.is_open:
                self.is_open = False
                kind = self.kind or Stream.REQUEST
                facts.append(StreamClosed(Side.SERVER, self.generation, kind, self._cause(end), self.node, self.events))
                if self.stream is not None:
                    self.stream.connections -= 1
                    self.stream.closed_at = self._state.clock()
            if self.session is not None:
                facts += self.session.left(self)
            self.is_over = True
            self.session = self.stream = self.live = self.attempt = self.tools = None
            self.queue.clear()
            self.replay.clear()
            self.strays.clear()
            self.calls.clear()
            return facts

    def _cause(self, end: End) -> Disconnect:
        if not end.finished:
            return Disconnect.CANCELLED if end.cancelled or not end.left else Disconnect.RESET
        carried = self.is_answered or self.generation is Generation.STATELESS
        return Disconnect.COMPLETED if carried else Disconnect.CLOSED

"""One HTTP exchange of a server, from its request to its end: what it opens, and what that says of a resumption."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from otel_mcp_resume.rules.terms import Disconnect, Generation, Side, Stream, UndeliveredCause
from otel_mcp_resume.watch.facts import EventsUndelivered, Fact, Node, StreamClosed
from otel_mcp_resume.watch.seen import shortened
from otel_mcp_resume.watch.server_attempt import ServerAttempt
from otel_mcp_resume.watch.server_connection import ServerConnection
from otel_mcp_resume.watch.server_request import Request
from otel_mcp_resume.watch.server_story import attempt_begun, stream_opened

if TYPE_CHECKING:
    from otel_mcp_resume.watch.server_account import SessionAccount
    from otel_mcp_resume.watch.server_request import End
    from otel_mcp_resume.watch.server_state import ServerState

__all__ = ["Exchange"]


class Exchange(ServerConnection):
    """What the hooks of one request talk to."""

    __slots__ = ()

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
            self.hold(stream)
            self.kind = stream.kind
            if stream.opened:
                self.begin_attempt(None)
            return
        cursor = session.find(shortened(token))
        if cursor is None and not token.isascii():
            cursor = session.find(shortened(_in_utf8(token)))
        self.kind = session.kind_of(session.standalone)
        if cursor is not None:
            self.hold(cursor.stream)
            self.kind = cursor.stream.kind
        self.begin_attempt(cursor)

    # -- the response ----------------------------------------------------------------------------

    def head(self, status: int, *, event_stream: bool, session_id: str | None) -> Sequence[Fact]:
        """The response begins. `session_id` is what its header names."""
        with self._state.lock:
            self.status = status
            if self.request.token is None and status == 409:  # the stream that it asked for is still open
                self.attempt = None
            attempt = self.attempt if self.request.token is None else self._late_attempt()
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
            facts += self.join(self.stream, self.kind)
        return facts

    def _late_attempt(self) -> ServerAttempt | None:
        """The attempt of this exchange, also if no session took it."""
        if self.attempt is None and self.request.token is not None:
            resumes = self.request.method == "GET"
            if resumes or (self.generation is Generation.STATELESS and self.request.method == "POST"):
                return self.begin_attempt(None)
        return self.attempt

    @staticmethod
    def dropped(count: int) -> Sequence[Fact]:
        """Events for a subscription were discarded, because its backlog was full.

        They had nowhere to wait. Nothing newer is written after an overflow, so they were not `skipped`, and there is
        no session that could have ended with them.
        """
        return (EventsUndelivered(Generation.STATELESS, Stream.LISTEN, UndeliveredCause.NO_STREAM, count),)

    # -- the end ---------------------------------------------------------------------------------

    def ended(self, end: End) -> Sequence[Fact]:
        """The application is done with the exchange. Nothing of it is remembered afterwards."""
        with self._state.lock:
            facts: list[Fact] = []
            attempt = self.attempt if self.request.token is None else self._late_attempt()
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
            self.queue = None
            self.replay = None
            self.strays.clear()
            self.calls = ()
            return facts

    def _cause(self, end: End) -> Disconnect:
        if not end.finished:
            return Disconnect.CANCELLED if end.cancelled or not end.left else Disconnect.RESET
        carried = self.is_answered or self.generation is Generation.STATELESS
        return Disconnect.COMPLETED if carried else Disconnect.CLOSED


def _in_utf8(token: str) -> str:
    """A token as a store knows it that reads headers as UTF-8. ASGI servers and the SDK read them as Latin-1."""
    try:
        return token.encode("latin-1").decode()
    except UnicodeError:
        return token

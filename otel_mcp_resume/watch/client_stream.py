"""One logical stream of a client: what it knows from one connection to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from otel_mcp_resume.rules.terms import Disconnect, Generation, Outcome, Reason, Side, Stream
from otel_mcp_resume.rules.verdict import Verdict, judge_session, judge_silence, judge_status
from otel_mcp_resume.watch.attempt import Attempt, Binding
from otel_mcp_resume.watch.attempting import attempt_of, meet
from otel_mcp_resume.watch.connection import SHOWN_ID, Connection
from otel_mcp_resume.watch.facts import AttemptBegun, Fact, Node, StreamOpened, StreamReopened
from otel_mcp_resume.watch.seen import LONG_ID, SeenIds, short_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otel_mcp_resume.rules.terms import DuplicateKind
    from otel_mcp_resume.watch.client import ClientTransport, ClientWatch
    from otel_mcp_resume.watch.exchange import RequestHead, ResponseHead

__all__ = ["ClientStream"]

_NOT_OFFERED = (Reason.BAD_REQUEST, Reason.SESSION_NOT_FOUND, Reason.NOT_SUPPORTED)
"""400, 404 and 405 to the first GET: a server without a standalone stream says so in one of these ways."""
_NO_STREAM = Verdict(Outcome.FAILED, Reason.NOT_EVENT_STREAM)


class ClientStream:
    """A `standalone`, `request`, `session` or `listen` stream, over all of its connections."""

    __slots__ = (
        "_refused",
        "answered",
        "barren",
        "cancelled",
        "cut",
        "ended_at",
        "generation",
        "has_ids",
        "kind",
        "last_id",
        "last_key",
        "lost",
        "method",
        "opened",
        "reopened",
        "request_id",
        "seen",
        "session_id",
        "transport",
        "watch",
    )

    def __init__(
        self, transport: ClientTransport, kind: Stream, *, method: str | None = None, request_id: str | None = None
    ) -> None:
        self.transport = transport
        self.watch: ClientWatch = transport.watch
        self.kind = kind
        self.method = method
        self.request_id = request_id
        """The JSON-RPC id as JSON text, for a stream that belongs to a request."""
        self.generation = transport.generation
        self.session_id: str | None = None
        self.seen = SeenIds(self.watch.memory)
        self.last_id: str | None = None
        """As it is shown, which may be its front only."""
        self.last_key: str | int | None = None
        """What it is known by."""
        self.has_ids = False
        self.opened = False
        self.answered = False
        self.cancelled = False
        self.lost = False
        self.reopened = False
        """It continues one that was lost, under another JSON-RPC id (`listen`)."""
        self.barren = 0
        self.ended_at: float | None = None
        self.cut: Node | None = None
        """The connection before the next one."""
        self._refused: Reason | None = None

    # -- opening ---------------------------------------------------------------------------------

    def requesting(self, request: RequestHead) -> tuple[Sequence[Fact], Attempt | None]:
        """A request for this stream is about to be sent. The attempt that it is, if a response should come."""
        with self.watch.lock:
            if self.generation is not Generation.SSE:
                self.generation = request.generation
            attempt = attempt_of(self, request)
            if attempt is None:
                return (), None
            return (self._begun(attempt),), attempt

    def _begun(self, attempt: Attempt) -> AttemptBegun:
        return AttemptBegun(Side.CLIENT, self.generation, self.kind, attempt.node, self.cut, self.transport.node)

    def responded(
        self, request: RequestHead, response: ResponseHead | None, attempt: Attempt | None
    ) -> tuple[Sequence[Fact], Connection | None]:
        """A response head arrived, or (None) the network gave none. The connection, if an event stream is open."""
        watch = self.watch
        with watch.lock:
            now = watch.clock()
            if self.transport.leaving:
                attempt = None  # it left while the request was on its way
            if attempt is not None:
                meet(attempt, self, request, response, now)
            verdict = judge_status(
                response.status if response else None, event_stream=bool(response and response.event_stream)
            )
            if verdict is not None or response is None:
                if attempt and request.token and verdict == _NO_STREAM and request.method == "POST":
                    verdict = judge_silence(attempt.silence(resumable=False))  # shown to a stateless server
                facts = attempt.settle(verdict, now) if attempt and verdict else []
                self._note_refusal(request, response, verdict, is_attempt=attempt is not None)
                return facts, None
            return self._open(request, response, attempt, now)

    def _open(
        self, request: RequestHead, response: ResponseHead, attempt: Attempt | None, now: float
    ) -> tuple[Sequence[Fact], Connection]:
        facts: list[Fact] = []
        named = response.session_id if response.session_id is not None else request.session_id
        connection = Connection(
            self,
            count=self.watch.events(self.generation, self.kind),
            context=attempt.context if attempt else self.transport.context(self, request, response),
            request_id=attempt.binding.request_id if attempt else self.request_id,
            attempt=attempt,
        )
        facts.append(
            StreamOpened(
                Side.CLIENT,
                self.generation,
                self.kind,
                connection.node,
                self.cut,
                self.transport.node,
                attempt.node if attempt else None,
                connection.context,
            )
        )
        if self.ended_at is not None:
            downtime = max(0.0, now - self.ended_at)
            facts.append(
                StreamReopened(Side.CLIENT, self.generation, self.kind, downtime, attempt.node if attempt else None)
            )
        self.cut = connection.node
        if attempt is not None:
            verdict = self._verdict_of_head(attempt, response)
            if verdict is not None:
                connection.attempt = None
                facts += attempt.settle(verdict, now)
                if verdict.outcome is Outcome.GAP:
                    self.forget_ids()
            else:
                self.watch.opened(attempt, connection)
        self.session_id = named
        self.opened = True
        self.ended_at = None
        return facts, connection

    def _verdict_of_head(self, attempt: Attempt, response: ResponseHead) -> Verdict | None:
        if changed := judge_session(attempt.binding.session_id, response.session_id):
            return changed
        if self.generation is Generation.STATELESS:
            return judge_silence(attempt.silence(resumable=False))
        return None

    def _note_refusal(
        self, request: RequestHead, response: ResponseHead | None, verdict: Verdict | None, *, is_attempt: bool
    ) -> None:
        if verdict is not None and verdict.reason not in _NOT_OFFERED:
            self._refused = verdict.reason
        if response is not None and response.status == 404 and (request.method == "POST" or is_attempt):
            self.watch.session_died(self.transport.origin, request.session_id)

    # -- running ---------------------------------------------------------------------------------

    def saw_id(self, event_id: str, data: str | None) -> DuplicateKind | None:
        """An id was on the wire for an event. What it repeats, if it does."""
        self.has_ids = True
        if len(event_id) <= LONG_ID:
            self.last_id = self.last_key = event_id
            return self.seen.add_key(event_id, data)
        self.last_id = event_id[:SHOWN_ID]
        self.last_key = key = short_key(event_id)
        return self.seen.add_key(key, data)

    def forget_token(self) -> None:
        """An empty id was on the wire, which resets the last event id (WHATWG)."""
        self.last_id = self.last_key = None

    def responded_with(self, answered: str, data: str) -> None:
        """A response arrived. One with the id `null` answers nothing, though an SDK may take it as the answer."""
        if answered != "null":
            self.answered = True
        if self.method == "tools/list":
            self.transport.tools_listed(data)

    def forget_ids(self) -> None:
        """What was remembered belongs to a past that the server no longer continues."""
        self.seen.close()
        self.seen = SeenIds(self.watch.memory)

    def connection_ended(self, connection: Connection, cause: Disconnect) -> None:
        """Holds the lock."""
        self.ended_at = self.watch.clock()
        self.lost |= not self.answered and not self.cancelled and cause in (Disconnect.CLOSED, Disconnect.RESET)
        if self.last_key is not None:
            self.watch.keep_cursor(self, self.last_key, connection)

    # -- the end ---------------------------------------------------------------------------------

    def given_up(self) -> Sequence[Fact]:
        """The SDK stopped trying, and nobody told it to. That is a record of its own, beside the attempts."""
        with self.watch.lock:
            if self.answered or self.cancelled or self.transport.leaving:
                return ()
            reason = self._why_abandoned()
            if reason is None:
                return ()
            now = self.watch.clock()
            attempt = Attempt(
                Binding(self.last_id, self.session_id, self.generation, self.request_id),
                stream=self.kind,
                generation=self.generation,
                context=self.transport.context(self, None, None),
                opened_at=now,
                downtime=None if self.ended_at is None else max(0.0, now - self.ended_at),
                on_expiry=self.watch.expired,
            )
            return (self._begun(attempt), *attempt.settle(Verdict(Outcome.ABANDONED, reason), now))

    def _why_abandoned(self) -> Reason | None:
        if self.opened:
            if self.kind is Stream.LISTEN:
                return None  # its loss is reported when it is opened again, as the generation has no resumption
            return Reason.RETRIES_EXHAUSTED if self.has_ids or self.kind is not Stream.REQUEST else Reason.NO_TOKEN
        if self.kind is Stream.STANDALONE and self._refused is not None:
            return Reason.NEVER_OPENED
        return None

    def dispose(self) -> None:
        """The exchange is over, however it ended."""
        with self.watch.lock:
            self.seen.close()
            self.watch.streams.discard(self)

"""What a session remembers, and what it counts as lost. The owner holds the lock of the watch around every call."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from otel_mcp_resume.rules.terms import Generation, Side, Stream, UndeliveredCause
from otel_mcp_resume.watch.calls import Tools
from otel_mcp_resume.watch.facts import EventsUndelivered, Fact, Node, SessionClosed
from otel_mcp_resume.watch.ledger import StreamLedger
from otel_mcp_resume.watch.server_debt import Cursor
from otel_mcp_resume.watch.server_inbox import Inbox
from otel_mcp_resume.watch.server_story import session_opened
from otel_mcp_resume.watch.subjects import UNWANTED, Subject

if TYPE_CHECKING:
    from otel_mcp_resume.watch.pending import Pending, Redelivery
    from otel_mcp_resume.watch.server_exchange import Exchange
    from otel_mcp_resume.watch.server_state import ServerState
    from otel_mcp_resume.watch.server_writing import Replayed

__all__ = ["SessionAccount"]


class SessionAccount:
    """The memory of one session, from its transport's beginning to its end."""

    __slots__ = (
        "_state",
        "awaited",
        "generation",
        "has_begun",
        "has_forgotten",
        "inbox",
        "is_blind",
        "is_ended",
        "is_finished",
        "is_json",
        "is_leaving",
        "is_open",
        "is_stored",
        "live",
        "node",
        "pending",
        "serving",
        "session_id",
        "standalone",
        "storing",
        "strays",
        "streams",
        "tools",
    )

    def __init__(
        self,
        state: ServerState,
        generation: Generation,
        session_id: str | None,
        *,
        standalone: str,
        is_stored: bool,
        is_json: bool,
        is_blind: bool,
    ) -> None:
        """`standalone` is the name of the one stream that belongs to no request."""
        self._state = state
        self.generation = generation
        self.session_id = session_id
        self.standalone = standalone
        self.is_stored = is_stored
        """Whether there is an event store."""
        self.is_json = is_json
        """Whether requests are answered in JSON, which carries nothing but the response."""
        self.is_blind = is_blind
        """Whether it was connected before anybody watched, so that what it emits is not seen."""
        self.streams: dict[str, StreamLedger] = {}
        self.live: dict[str, Exchange] = {}
        """Where a message of a stream goes at this moment."""
        self.pending: dict[str, Pending] = {}
        self.awaited: list[Redelivery] = []
        """The resumptions of the session whose time to deliver has not passed."""
        self.strays: dict[str, tuple[Replayed, Exchange]] = {}
        """Replayed ids that the store has not issued yet, while it is storing."""
        self.storing = 0
        """Calls of the store that have not returned."""
        self.serving = 0
        """Exchanges that have not ended."""
        self.has_begun = False
        """Whether its handshake was seen: nothing of it can have happened elsewhere."""
        self.has_forgotten = False
        """Whether anything of it was evicted."""
        self.is_open = False
        self.is_leaving = False
        """Whether the client itself ends the session."""
        self.is_ended = False
        self.is_finished = False
        """Whether it is over, and everything is given back."""
        self.node = Node()
        self.tools = Tools()
        self.inbox = Inbox(state, self)

    @property
    def is_complete(self) -> bool:
        """Whether every id of the session is in the ledger."""
        return self.has_begun and not self.has_forgotten

    def kind_of(self, name: str) -> Stream:
        """The kind of the stream called `name`."""
        if self.generation is Generation.SSE:
            return Stream.SESSION
        return Stream.STANDALONE if name == self.standalone else Stream.REQUEST

    def stream(self, name: str) -> StreamLedger:
        """The account of the stream called `name`, begun if there is none."""
        return self.streams.get(name) or self._state.ledger.open(self, name, self.kind_of(name))

    def standalone_stream(self) -> StreamLedger:
        """The account of the standalone stream."""
        return self.stream(self.standalone)

    def find(self, event_id: str) -> Cursor | None:
        """Where an event is in the ledger of this session. Looks at all streams: not to be called for each event.

        The latest first, since that is nearly always what is resumed.
        """
        for stream in reversed(self.streams.values()):
            seq = stream.events.get(event_id)
            if seq is not None:
                return Cursor(stream, seq)
        return None

    def accepted(self, exchange: Exchange, session_id: str | None) -> Sequence[Fact]:
        """`exchange` was answered with a 2xx; `session_id` is what the response names."""
        is_named = self.session_id is not None and session_id in (None, self.session_id)
        if not is_named or self.is_open or self.is_ended:
            return ()
        self.is_open = True
        return (session_opened(self, exchange),)

    # -- what is lost ----------------------------------------------------------------------------

    def skip(self, stream: StreamLedger, seq: int, spare: Collection[str] = ()) -> Sequence[Fact]:
        """The client has moved past `seq`: what waited before it, but for `spare`, can't be asked for any more."""
        if not stream.parked:
            return ()
        gone = [event_id for event_id, place in stream.parked.items() if place < seq and event_id not in spare]
        for event_id in gone:
            del stream.parked[event_id]
        meanings = [stream.subjects.get(event_id) for event_id in gone]
        return self.undelivered(stream.kind, UndeliveredCause.SKIPPED, meanings, stream)

    def undelivered(
        self, kind: Stream, cause: UndeliveredCause, messages: Iterable[Subject | None], stream: StreamLedger | None
    ) -> Sequence[Fact]:
        """Messages that can no longer reach the client. `stream`, if it has an account, remembers how many."""
        facts: list[Fact] = []
        count = 0
        for subject in messages:
            if subject is UNWANTED:
                continue
            count += 1
            if subject is not None:
                facts += subject.lost()
        if count:
            facts.insert(0, EventsUndelivered(self.generation, kind, cause, count))
            if stream is not None:
                stream.lost += count
        return facts

    # -- the ends --------------------------------------------------------------------------------

    def left(self, exchange: Exchange) -> Sequence[Fact]:
        """An exchange is over. What was on its way to it goes back to wait, or is lost."""
        for name in [name for name, other in self.live.items() if other is exchange]:
            del self.live[name]
        facts = self._strand(exchange) if exchange.queue else ()
        for call in exchange.calls:
            if not call.is_answered and not self.is_leaving:
                self._state.calls.cut(call)
        self.serving -= 1
        return [*facts, *self.finish_if_quiet()] if self.is_ended else facts

    def _strand(self, exchange: Exchange) -> Sequence[Fact]:
        gone: list[Subject] = []
        for item in exchange.queue or ():
            if isinstance(item, Subject):
                gone.append(item)
            elif exchange.live is not None and item in exchange.live.events:
                exchange.live.parked[item] = exchange.live.events[item]
        if not gone:
            return ()
        cause = UndeliveredCause.SESSION_ENDED if self.is_ended else UndeliveredCause.NO_STREAM
        return self.undelivered(exchange.kind or Stream.REQUEST, cause, gone, exchange.stream)

    def finish_if_quiet(self) -> Sequence[Fact]:
        """Gives everything back once the session has ended and its last exchange with it."""
        if not self.is_ended or self.serving or self.is_finished:
            return ()
        self.is_finished = True
        facts: list[Fact] = []
        waiting: dict[Stream, list[Subject | None]] = {}
        for stream in list(self.streams.values()):
            if stream.parked:
                waiting.setdefault(stream.kind, []).extend(map(stream.subjects.get, stream.parked))
            self._state.ledger.release(stream)
        for kind, messages in waiting.items():
            facts += self.undelivered(kind, UndeliveredCause.SESSION_ENDED, messages, None)
        facts += self._state.pending.end(self)
        for redelivery in self.awaited:
            self._state.deadlines.forget(redelivery)
        self.awaited.clear()
        self.live.clear()
        self.strays.clear()
        self.inbox.clear()
        if self.is_open:
            facts.append(SessionClosed(Side.SERVER, self.generation, self.node))
        return facts

"""What a client sends into its session, and what the session's own messages mean in the light of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from otel_mcp_resume.rules.terms import Side, Stream, ViolationRule
from otel_mcp_resume.watch.facts import Context, Fact, Violated
from otel_mcp_resume.watch.subjects import ANSWER, UNWANTED, Subject

if TYPE_CHECKING:
    from otel_mcp_resume.watch.calls import Call
    from otel_mcp_resume.watch.server_account import SessionAccount
    from otel_mcp_resume.watch.server_exchange import Exchange
    from otel_mcp_resume.watch.server_state import ServerState

__all__ = ["Inbox"]

LIMIT = 256
"""Cancelled and listing requests of one session that are remembered until they are answered."""


class Inbox:
    """The requests of one client that wait for their answers."""

    __slots__ = ("_began", "_calls", "_cancelled", "_client_name", "_listing", "_session", "_state")

    def __init__(self, state: ServerState, session: SessionAccount) -> None:
        self._state = state
        self._session = session
        self._client_name = ""
        self._calls: dict[str, Call] = {}
        self._began = state.clock()
        self._cancelled: dict[str, None] = {}
        self._listing: dict[str, None] = {}

    def initialized(self, client_name: str) -> None:
        """The handshake: from here on the ledger of the session is complete."""
        with self._state.lock:
            self._client_name = client_name
            self._session.has_begun = True

    def called(self, exchange: Exchange, request_id: str, tool: str, arguments: Any) -> Sequence[Fact]:
        """A tool call comes in and will be executed."""
        with self._state.lock:
            session, book = self._session, self._state.calls
            if session.tools.are_harmless(tool):
                return ()
            call = book.call(exchange.request.peer, self._client_name, tool, arguments, self)
            earlier = self._calls.get(request_id)
            is_same = earlier is not None and earlier.key == call.key and not earlier.is_answered
            is_repeated = book.repeats(call, self._began) or is_same
            self._calls[request_id] = call
            exchange.calls = (*exchange.calls, call)
            if not is_repeated:
                return ()
            kind = Stream.REQUEST if exchange.kind is None else exchange.kind
            context = Context(
                session_id=session.session_id or None,
                protocol_version=exchange.request.protocol_version,
                method="tools/call",
                request_id=request_id,
            )
            rule = ViolationRule.DUPLICATE_CALL
            return (Violated(Side.SERVER, session.generation, rule, kind, context=context, node=exchange.node),)

    def listed(self, request_id: str) -> None:
        """The client asks for the tools."""
        with self._state.lock:
            _remember(self._listing, request_id)

    def expects_tools(self, request_id: str) -> bool:
        """Whether the response to this request lists the tools. Asked for once."""
        if not self._listing:
            return False
        with self._state.lock:
            return self._listing.pop(request_id, self) is None

    def cancelled(self, request_id: str) -> None:
        """The client gives up one of its requests."""
        with self._state.lock:
            _remember(self._cancelled, request_id)
            call = self._calls.pop(request_id, None)
            if call is not None:
                call.settle()

    def replied(self, request_id: str) -> Sequence[Fact]:
        """The client answers a request of the server."""
        with self._state.lock:
            return self._state.pending.close(self._session, request_id)

    def answer(self, request_id: str) -> Subject:
        """What the response to a request means. Holds the lock."""
        if self._cancelled and self._cancelled.pop(request_id, self) is None:
            return UNWANTED
        return self._calls.pop(request_id, None) or ANSWER

    def clear(self) -> None:
        """The session is over. Holds the lock."""
        self._calls.clear()
        self._cancelled.clear()
        self._listing.clear()


def _remember(memory: dict[str, None], request_id: str) -> None:
    memory[request_id] = None
    if len(memory) > LIMIT:
        del memory[next(iter(memory))]

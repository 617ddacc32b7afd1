"""The JSON-RPC messages of the SDK, told apart by their classes: 1.x wraps them in a root model, 2.x does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from otel_mcp_resume.watch.calls import member
from otel_mcp_resume.watch.server_session import NOTIFICATION, REQUEST, RESPONSE, Session

if TYPE_CHECKING:
    from otel_mcp_resume.watch.facts import Fact
    from otel_mcp_resume.watch.server_exchange import Exchange

__all__ = ["WRAPPED", "inner", "kind_of", "note_received", "told_apart", "unwrapped"]

WRAPPED = -1
PRIMING = 3
"""An SDK stores this in place of a message, for the id alone."""
_KINDS = {
    "JSONRPCRequest": REQUEST,
    "JSONRPCNotification": NOTIFICATION,
    "JSONRPCResponse": RESPONSE,
    "JSONRPCError": RESPONSE,
    "JSONRPCMessage": WRAPPED,
    "NoneType": PRIMING,
}


class _KindOf(dict[type, int]):
    """By class, looked up once for each."""

    def __missing__(self, cls: type) -> int:
        kind = next((_KINDS[base.__name__] for base in cls.__mro__ if base.__name__ in _KINDS), NOTIFICATION)
        self[cls] = kind
        return kind


kind_of = _KindOf()
"""What a message of a class is. Read it in place of `unwrapped` where every message passes."""


def unwrapped(message: Any) -> tuple[int, Any]:
    """What kind of message it is, and the message itself."""
    kind = kind_of[type(message)]
    if kind != WRAPPED:
        return kind, message
    message = message.root
    return kind_of[type(message)], message


def told_apart(session: Session, message: Any) -> tuple[int, str, Sequence[Fact]]:
    """The kind and id of a message that the server emits, and what is learned from it on the way."""
    kind, message = unwrapped(message)
    if kind == NOTIFICATION:
        if session.pending and message.method == "notifications/cancelled":
            return kind, "", session.withdrew(_request_id(message.params))
        return kind, "", ()
    request_id = str(message.id)
    if kind == RESPONSE and session.inbox.expects_tools(request_id):
        session.tools.learn(getattr(message, "result", None))
    return kind, request_id, ()


def note_received(session: Session, exchange: Exchange, item: Any) -> Sequence[Fact]:
    """A message of the client reaches its session. Anything else on that way (an exception) says nothing."""
    message = getattr(item, "message", None)
    if message is None:
        return ()
    kind, message = unwrapped(message)
    if kind == RESPONSE:
        return session.inbox.replied(str(message.id))
    method, params = message.method, message.params
    if kind == NOTIFICATION:
        if method == "notifications/cancelled":
            session.inbox.cancelled(_request_id(params))
    elif method == "tools/call":
        tool, arguments = str(member(params, "name")), member(params, "arguments")
        return session.inbox.called(exchange, str(message.id), tool, arguments)
    elif method == "tools/list":
        session.inbox.listed(str(message.id))
    elif method == "initialize":
        session.inbox.initialized(_client_name(params))
    return ()


def inner(stream: Any) -> tuple[Any, bool]:
    """The memory stream below an SDK stream, and whether its items are pairs of a context and a message (2.x)."""
    below = getattr(stream, "_inner", None)
    return (stream, False) if below is None else (below, True)


def _request_id(params: Any) -> str:
    return str(member(params, "requestId"))


def _client_name(params: Any) -> str:
    info = member(params, "clientInfo")
    return f"{member(info, 'name')} {member(info, 'version')}"

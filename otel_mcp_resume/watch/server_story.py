"""Which facts tell how an exchange of a server begins, and which nodes and context they carry.

The owner holds the lock of the watch around every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from otel_mcp_resume.rules.terms import Side, Stream
from otel_mcp_resume.watch.facts import AttemptBegun, Context, Fact, Node, SessionOpened, StreamOpened

if TYPE_CHECKING:
    from otel_mcp_resume.watch.ledger import StreamLedger
    from otel_mcp_resume.watch.server_account import SessionAccount
    from otel_mcp_resume.watch.server_attempt import ServerAttempt
    from otel_mcp_resume.watch.server_connection import ServerConnection

__all__ = ["attempt_begun", "context_of", "session_opened", "stream_opened"]


def context_of(exchange: ServerConnection, stream: StreamLedger | None) -> Context:
    """What is known of an exchange that is about `stream`."""
    request, session = exchange.request, exchange.session
    session_id = request.session_id
    if session_id is None and request.token is None and session is not None:
        session_id = session.session_id or None
    return Context(
        session_id=session_id,
        protocol_version=request.protocol_version,
        method=request.rpc_method,
        request_id=stream.name if stream is not None and stream.kind is Stream.REQUEST else None,
        status_code=exchange.status,
        server_address=request.server_address,
        server_port=request.server_port,
    )


def session_opened(session: SessionAccount, exchange: ServerConnection) -> Fact:
    """`exchange` established `session`, or is the first that was seen of it."""
    context = context_of(exchange, None)
    if session.session_id:  # also if the request shows a token of some other session
        context = replace(context, session_id=session.session_id)
    return SessionOpened(Side.SERVER, session.generation, session.node, context, exchange.request.carrier)


def stream_opened(exchange: ServerConnection, kind: Stream, node: Node) -> Fact:
    """`exchange` is an SSE connection from now on."""
    stream, session, attempt = exchange.stream, exchange.session, exchange.attempt
    return StreamOpened(
        Side.SERVER,
        exchange.generation,
        kind,
        node=node,
        cut=None if stream is None else stream.cut,
        session=None if session is None else session.node,
        attempt=None if attempt is None else attempt.node,
        context=context_of(exchange, stream),
        carrier=exchange.request.carrier,
    )


def attempt_begun(exchange: ServerConnection, attempt: ServerAttempt) -> Sequence[Fact]:
    """`exchange` re-opens a stream. Nothing if that was told, or if it only looks like it."""
    if attempt.is_begun or attempt.is_settled:
        return ()
    attempt.is_begun = True
    stream, session = attempt.debt.stream or exchange.stream, exchange.session
    return (
        AttemptBegun(
            Side.SERVER,
            exchange.generation,
            attempt.stream,
            attempt.node,
            cut=None if stream is None else stream.cut,
            session=None if session is None else session.node,
            carrier=exchange.request.carrier,
            age=exchange.age,
        ),
    )

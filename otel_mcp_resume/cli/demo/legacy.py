"""A server of the first generation, HTTP+SSE, as one that numbers its events: ids that it gives no meaning to.

The SDK writes none on that transport. Gateways and servers of other make do, since browsers remember the last id by
themselves; and what is remembered is shown to whatever answers next.
"""

from __future__ import annotations

from collections.abc import Iterator

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["numbered"]

MESSAGE = b"event: message"
"""How the SDK begins an event that carries a JSON-RPC message."""


def numbered(app: ASGIApp, numbers: Iterator[int]) -> ASGIApp:
    """`app`, with an id before every message that it sends as an event."""

    async def numbering(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_numbered(message: Message) -> None:
            body = message.get("body", b"")
            if body.startswith(MESSAGE):
                message = {**message, "body": b"id: %d\r\n%b" % (next(numbers), body)}
            await send(message)

        await app(scope, receive, send_numbered)

    return numbering

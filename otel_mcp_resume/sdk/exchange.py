"""The exchange that the current task is in the middle of, as far as the HTTP client below it needs to know."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

if TYPE_CHECKING:
    from otel_mcp_resume.watch.attempt import Attempt
    from otel_mcp_resume.watch.client_stream import ClientStream
    from otel_mcp_resume.watch.connection import Connection
    from otel_mcp_resume.watch.exchange import RequestHead, ResponseHead
    from otel_mcp_resume.watch.transport import ClientTransport

__all__ = ["EXCHANGE", "Exchange", "begin_posting", "posting_exchange"]


class Exchange:
    """One call of a transport method, with all the HTTP requests that it makes by and by."""

    __slots__ = (
        "__weakref__",
        "attempt",
        "call",
        "connection",
        "http",
        "method",
        "redirect",
        "sending",
        "stream",
        "transport",
    )

    def __init__(
        self,
        transport: ClientTransport,
        http: Any,
        stream: ClientStream | None,
        *,
        method: str | None = None,
        call: tuple[str, Any] | None = None,
    ) -> None:
        self.transport = transport
        self.http = http
        """The HTTP client of the transport; None until it is known. Requests of others (of an OAuth flow, say) are
        none of ours."""
        self.stream = stream
        self.method = method
        self.call = call
        """Tool and arguments, if this is a `tools/call`."""
        self.attempt: Attempt | None = None
        """Of the request that is on its way."""
        self.connection: Connection | None = None
        self.sending = False
        self.redirect: tuple[Any, RequestHead, ResponseHead] | None = None
        """A redirect that the SDK may follow or not: the next request tells."""


EXCHANGE: ContextVar[Exchange | None] = ContextVar("otel_mcp_resume_exchange", default=None)
"""Set by a wrapper around a coroutine and reset when that returns, so never across a `yield` of ours."""

_POSTING: WeakKeyDictionary[Any, ref[Exchange]] = WeakKeyDictionary()
"""HTTP+SSE: whose posts an HTTP client makes. From 2.0 on that happens in the context of whoever sends the message."""


def begin_posting(http: Any, exchange: Exchange) -> None:
    """`http` belongs to the session of `exchange` from now on. It is held by that, which is held by nobody here."""
    _POSTING[http] = ref(exchange)


def posting_exchange(http: Any) -> Exchange | None:
    """The exchange of HTTP+SSE that `http` was made for, if it is one."""
    known = _POSTING.get(http) if _POSTING else None
    return None if known is None else known()

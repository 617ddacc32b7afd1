"""The exchange that the current task is in the middle of, as far as the HTTP client below it needs to know."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from otel_mcp_resume.watch.transport import session_in_url

if TYPE_CHECKING:
    from otel_mcp_resume.watch.attempt import Attempt
    from otel_mcp_resume.watch.client_stream import ClientStream
    from otel_mcp_resume.watch.connection import Connection
    from otel_mcp_resume.watch.exchange import RequestHead, ResponseHead
    from otel_mcp_resume.watch.transport import ClientTransport

__all__ = ["EXCHANGE", "Exchange", "begin_posting", "posting_exchange"]


_NOBODYS = object()
"""In place of the HTTP client of an exchange that is over: no request is one of its."""


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
        "told",
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
        self.told: Any = None
        """The response to a `tools/call`, whose request says what it was authorised with."""
        self.redirect: tuple[Any, RequestHead, ResponseHead] | None = None
        """A redirect that the SDK may follow or not: the next request tells."""

    def let_go(self) -> None:
        """It is over. Event loops keep the contexts of cancelled timers for minutes: what they hold must weigh nothing.

        An HTTP client has certificates of its own, a megabyte of them.
        """
        self.call = self.told = self.connection = self.attempt = None
        self.http = _NOBODYS


EXCHANGE: ContextVar[Exchange | None] = ContextVar("otel_mcp_resume_exchange", default=None)
"""Set by a wrapper around a coroutine and reset when that returns, so never across a `yield` of ours."""

_POSTING: WeakKeyDictionary[Any, tuple[ref[Exchange], ...]] = WeakKeyDictionary()
"""HTTP+SSE: whose posts an HTTP client makes. From 2.0 on that happens in the context of whoever sends the message."""


def begin_posting(http: Any, exchange: Exchange) -> None:
    """`http` posts for the session of `exchange` from now on. It is held by that, which is held by nobody here."""
    _POSTING[http] = (*(known for known in _POSTING.get(http, ()) if known() is not None), ref(exchange))


def posting_exchange(http: Any, request: Any) -> Exchange | None:
    """The exchange of HTTP+SSE that `request` is a post of, if it is one.

    An application may use the HTTP client of its session for posts of its own, too, and one client for many sessions.
    """
    known = _POSTING.get(http) if _POSTING else None
    if known is None or str(request.method) != "POST" or (named := session_in_url(str(request.url))) is None:
        return None
    exchanges = (each() for each in known)
    return next((exchange for exchange in exchanges if exchange and exchange.transport.session_id == named), None)

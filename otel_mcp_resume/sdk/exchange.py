"""The exchange that the current task is in the middle of, as far as the HTTP client below it needs to know."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from otel_mcp_resume.watch.attempt import Attempt
    from otel_mcp_resume.watch.client_stream import ClientStream
    from otel_mcp_resume.watch.connection import Connection
    from otel_mcp_resume.watch.exchange import RequestHead, ResponseHead
    from otel_mcp_resume.watch.transport import ClientTransport

__all__ = ["EXCHANGE", "Exchange"]


class Exchange:
    """One call of a transport method, with all the HTTP requests that it makes by and by."""

    __slots__ = ("attempt", "call", "connection", "http", "method", "redirect", "sending", "stream", "transport")

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

"""The HTTP client below the SDK: merged headers on the way out, the head and the text on the way in.

`AsyncClient.send` is the one function of `httpx` and `httpx2` that every SDK version goes through. It acts only
while an MCP exchange is under way, so other users of the HTTP library pay one look at a context variable.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from otel_mcp_resume.rules.terms import Disconnect, Generation
from otel_mcp_resume.sdk.contexts import put_back
from otel_mcp_resume.sdk.exchange import EXCHANGE, Exchange, begin_posting, posting_exchange
from otel_mcp_resume.sdk.http_heads import credential, named_credential, request_head, response_head, stated_credential
from otel_mcp_resume.sdk.http_pool import LEAVING
from otel_mcp_resume.sdk.http_text import Reading, tap_body, tap_text
from otel_mcp_resume.watch.exchange import Leaving, RequestHead, ResponseHead

if TYPE_CHECKING:
    from otel_mcp_resume.sdk.patches import AsyncWrapper
    from otel_mcp_resume.sdk.runtime import Runtime
    from otel_mcp_resume.watch.asked import Asked
    from otel_mcp_resume.watch.client_stream import ClientStream
    from otel_mcp_resume.watch.connection import Connection

__all__ = ["HttpTap", "authorised"]

_NEVER_SENT = frozenset(
    {"ConnectError", "ConnectTimeout", "LocalProtocolError", "PoolTimeout", "ProxyError", "UnsupportedProtocol"}
)
"""Errors of `httpx` and `httpx2` after which the server can't have seen the request."""


class HttpTap:
    """Wraps `send`, and what it returns."""

    def __init__(self, runtime: Runtime, hook: str) -> None:
        self._report = runtime.report
        self._client = runtime.client
        guard = runtime.guard
        self._drop = guard(hook, runtime.drop)
        self._carry_span = runtime.carry
        self._current_span = runtime.http_spans.current
        self._posts = guard(hook, posting_exchange)
        self._reads = guard(hook, self._read)
        self._failed = guard(hook, self._failure)
        self._fail = guard.fail(hook)
        self._learned = guard(hook, self._learn)
        self._reading = Reading(self._report, self._fail, guard(hook, self._end))

    def wrapper(self) -> AsyncWrapper:
        """The wrapper of `AsyncClient.send`."""
        posts, fail = self._posts, self._fail

        async def send(
            wrapped: Callable[..., Awaitable[Any]], instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
        ) -> Any:
            exchange = EXCHANGE.get()
            request: Any = args[0] if args else kwargs.get("request")
            if exchange is None or exchange.http not in (instance, None):
                exchange = posts(instance, request)
            if not isinstance(exchange, Exchange) or exchange.sending:
                return await wrapped(*args, **kwargs)
            head = carried = left = None
            try:  # as `Guard` would, without a wrapper for each step
                head = self._begin(exchange, instance, request)
                if head is not None:
                    carried, left = self._depart(exchange, head, request)
            except Exception as error:  # noqa: BLE001 - ours alone
                fail(error)
            if head is None:
                return await wrapped(*args, **kwargs)
            exchange.sending = True
            leaving = LEAVING.set(left)
            try:
                response = await wrapped(*args, **kwargs)
            except Exception as error:
                self._failed(exchange, head, error)
                raise
            finally:
                exchange.sending = False
                put_back(LEAVING, leaving)
                if carried is not None:
                    self._drop(carried)
            try:
                self._answer(exchange, head, response)
            except Exception as error:  # noqa: BLE001 - ours alone
                fail(error)
            return response

        return send

    # -- bookkeeping: everything below runs behind the guard -------------------------------------

    def _begin(self, exchange: Exchange, http: Any, request: Any) -> RequestHead | None:
        method = str(request.method)
        if exchange.http is None and exchange.transport.asked is not None:
            begin_posting(http, exchange)
        exchange.http = http  # `sse_client` makes its own
        if method not in ("GET", "POST"):
            return None
        head = request_head(request, method, exchange.transport.generation)
        if head is None:
            return None
        redirected, exchange.redirect = exchange.redirect, None
        if redirected is not None:
            if redirected[0] == request.url:
                return head  # the SDK followed it, so this is still the same request
            self._take(exchange, redirected[1], redirected[2])
        exchange.attempt = None
        if stream := _stream_of(exchange, head):
            facts, exchange.attempt = stream.requesting(head)
            if facts:
                self._report(facts)
        if method == "POST":
            self._posting(exchange, head, request)
        return head

    def _posting(self, exchange: Exchange, head: RequestHead, request: Any) -> None:
        if exchange.transport.asked is not None:
            exchange.call = None
            self._reads(exchange, exchange.transport.asked, request)
        facts = exchange.transport.posting(head, exchange.method)
        if facts:
            self._report(facts)
        if exchange.call is None:
            return
        transport = exchange.transport
        if transport.credential is None:  # the first request of all, where no handshake goes before
            transport.credential = stated_credential(exchange.http, request)
        elif transport.watch.calls.are_known:  # an application may put other headers into its client at any time
            transport.credential = named_credential(exchange.http, request) or transport.credential
        facts = transport.calling(*exchange.call)
        if facts:
            self._report(facts)

    def _read(self, exchange: Exchange, asked: Asked, request: Any) -> None:
        exchange.call = asked.posting(request.content)

    def _depart(self, exchange: Exchange, head: RequestHead, request: Any) -> tuple[object, Leaving | None]:
        """What is to be dropped again when the request is answered, and what is known of it until then."""
        carried, leaving = None, None
        try:
            if exchange.attempt is not None:
                carried = self._carry_span(exchange.attempt.node, request.headers)
        except Exception as error:  # noqa: BLE001 - ours alone
            self._fail(error)
        try:
            leaving = self._leaving(exchange, head)
        except Exception as error:  # noqa: BLE001 - ours alone
            self._fail(error)
        return carried, leaving

    def _leaving(self, exchange: Exchange, head: RequestHead) -> Leaving:
        is_legacy = exchange.transport.generation is Generation.SSE
        generation = Generation.SSE if is_legacy else head.generation
        kind = None if exchange.stream is None else exchange.stream.kind
        return Leaving(self._current_span(), generation, head.session_id, kind, head.token)

    def _failure(self, exchange: Exchange, head: RequestHead, error: Exception) -> None:
        response = getattr(error, "response", None)
        if response is not None:  # a hook of the application's own turned the answer into an exception
            if connection := self._take(exchange, head, response_head(response)):
                self._end(connection, Disconnect.CANCELLED)  # and nobody will read it
            return
        if head.method == "POST" and exchange.call is not None:
            authorised(exchange, error)
            exchange.transport.call_failed(*exchange.call, was_sent=type(error).__name__ not in _NEVER_SENT)
        if stream := _stream_of(exchange, head):
            self._report(stream.responded(head, None, exchange.attempt)[0])

    def _answer(self, exchange: Exchange, head: RequestHead, response: Any) -> None:
        answer = response_head(response)
        transport, is_call = exchange.transport, exchange.call is not None
        is_legacy = transport.asked is not None
        if transport.credential is None or (is_call and (is_legacy or transport.watch.calls.are_known)):
            authorised(exchange, response)
        if is_call and not is_legacy:
            exchange.told = response  # to be looked at if the call is left, which is seldom
        next_request = getattr(response, "next_request", None)
        if 300 <= answer.status < 400 and next_request is not None:
            exchange.redirect = next_request.url, head, answer
            return
        connection = self._take(exchange, head, answer)
        if connection is not None:
            tap_text(response, connection, self._reading)
        elif exchange.method == "tools/list":
            tap_body(response, partial(self._learned, exchange), self._fail)

    def _take(self, exchange: Exchange, head: RequestHead, answer: ResponseHead) -> Connection | None:
        if head.method == "POST":
            facts = exchange.transport.posted(head, answer, exchange.method)
            if facts:
                self._report(facts)
        stream = _stream_of(exchange, head)
        if stream is None:
            return None
        facts, connection = stream.responded(head, answer, exchange.attempt)
        if facts:
            self._report(facts)
        exchange.connection = connection
        return connection

    def finish(self, exchange: Exchange) -> None:
        """The exchange is over; a redirect that nobody followed is what the server had to say."""
        redirected, exchange.redirect = exchange.redirect, None
        if redirected is not None:
            self._take(exchange, redirected[1], redirected[2])
        if exchange.connection is not None:
            self._end(exchange.connection, Disconnect.CANCELLED)  # in case that nobody closed the response

    def _end(self, connection: Connection, cause: Disconnect, *, by_sdk: bool = False) -> None:
        if connection.closed:
            return
        if by_sdk:
            connection.stream.answered = True  # it has what it waited for, in whatever shape
        self._report(connection.ended(cause))
        facts = self._client.evictions()
        if facts:
            self._report(facts)

    @staticmethod
    def _learn(exchange: Exchange, body: bytes) -> None:
        exchange.transport.tools_listed(body.decode("utf-8", "replace"))


def authorised(exchange: Exchange, told: Any) -> None:
    """Learns what a request was authorised with, from its response or its error: a transport may renew its token."""
    found = credential(told)
    if found is not None:
        exchange.transport.credential = found


def _stream_of(exchange: Exchange, head: RequestHead) -> ClientStream | None:
    """The stream that a response belongs to. Over HTTP+SSE a POST has none: the answer comes on the session's."""
    if head.method == "POST" and exchange.transport.generation is Generation.SSE:
        return None
    return exchange.stream

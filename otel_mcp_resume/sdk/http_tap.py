"""The HTTP client below the SDK: merged headers on the way out, the head and the text on the way in.

`AsyncClient.send` is the one function of `httpx` and `httpx2` that every SDK version goes through. It acts only
while an MCP exchange is under way, so other users of the HTTP library pay one look at a context variable.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from otel_mcp_resume.rules.terms import Disconnect, Generation
from otel_mcp_resume.sdk.exchange import EXCHANGE, Exchange, begin_posting, posting_exchange
from otel_mcp_resume.sdk.http_heads import opens_streams, request_head, response_head
from otel_mcp_resume.sdk.http_pool import LEAVING
from otel_mcp_resume.watch.exchange import Leaving, RequestHead, ResponseHead

if TYPE_CHECKING:
    from otel_mcp_resume.sdk.patches import AsyncWrapper
    from otel_mcp_resume.sdk.runtime import Runtime
    from otel_mcp_resume.watch.asked import Asked
    from otel_mcp_resume.watch.client_stream import ClientStream
    from otel_mcp_resume.watch.connection import Connection

__all__ = ["HttpTap"]

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
        self._carries = guard(hook, self._carry)
        self._drop = guard(hook, runtime.drop)
        self._carry_span = runtime.carry
        self._leaves = guard(hook, self._leaving)
        self._current_span = runtime.http_spans.current
        self._begins = guard(hook, self._begin)
        self._posts = guard(hook, posting_exchange)
        self._reads = guard(hook, self._read)
        self._failed = guard(hook, self._failure)
        self._answered = guard(hook, self._answer)
        self._fail = guard.fail(hook)
        self._over = guard(hook, self._end)
        self._learned = guard(hook, self._learn)

    def wrapper(self) -> AsyncWrapper:
        """The wrapper of `AsyncClient.send`."""
        posts = self._posts

        async def send(
            wrapped: Callable[..., Awaitable[Any]], instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
        ) -> Any:
            exchange = EXCHANGE.get()
            request: Any = args[0] if args else kwargs.get("request")
            if exchange is None or exchange.http not in (instance, None):
                exchange = posts(instance, request)
            if exchange is None or exchange.sending:
                return await wrapped(*args, **kwargs)
            head = self._begins(exchange, instance, request)
            if head is None:
                return await wrapped(*args, **kwargs)
            exchange.sending = True
            carried = self._carries(exchange, request)
            leaving = LEAVING.set(self._leaves(exchange, head))
            try:
                response = await wrapped(*args, **kwargs)
            except Exception as error:
                self._failed(exchange, head, error)
                raise
            finally:
                exchange.sending = False
                LEAVING.reset(leaving)
                if carried is not None:
                    self._drop(carried)
            self._answered(exchange, head, response)
            return response

        return send

    # -- bookkeeping: everything below runs behind the guard -------------------------------------

    def _begin(self, exchange: Exchange, http: Any, request: Any) -> RequestHead | None:
        method = str(request.method)
        if exchange.http is None and exchange.transport.asked is not None:
            begin_posting(http, exchange)
        exchange.http = http  # `sse_client` makes its own
        if method not in ("GET", "POST") or not opens_streams(request, method, exchange.transport.generation):
            return None
        head = request_head(request, exchange.transport.generation)
        redirected, exchange.redirect = exchange.redirect, None
        if redirected is not None:
            if redirected[0] == request.url:
                return head  # the SDK followed it, so this is still the same request
            self._take(exchange, redirected[1], redirected[2])
        exchange.attempt = None
        if stream := _stream_of(exchange, head):
            facts, exchange.attempt = stream.requesting(head)
            self._report(facts)
        if method == "POST":
            if exchange.transport.asked is not None:
                exchange.call = None
                self._reads(exchange, exchange.transport.asked, request)
            self._report(exchange.transport.posting(head, exchange.method))
            if exchange.call is not None:
                self._report(exchange.transport.calling(*exchange.call))
        return head

    def _read(self, exchange: Exchange, asked: Asked, request: Any) -> None:
        exchange.call = asked.posting(request.content)

    def _carry(self, exchange: Exchange, request: Any) -> object:
        return None if exchange.attempt is None else self._carry_span(exchange.attempt.node, request.headers)

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
            exchange.transport.call_failed(*exchange.call, was_sent=type(error).__name__ not in _NEVER_SENT)
        if stream := _stream_of(exchange, head):
            self._report(stream.responded(head, None, exchange.attempt)[0])

    def _answer(self, exchange: Exchange, head: RequestHead, response: Any) -> None:
        answer = response_head(response)
        next_request = getattr(response, "next_request", None)
        if 300 <= answer.status < 400 and next_request is not None:
            exchange.redirect = next_request.url, head, answer
            return
        connection = self._take(exchange, head, answer)
        if connection is not None:
            self._tap_text(response, connection)
        elif exchange.method == "tools/list":
            self._tap_body(response, exchange)

    def _take(self, exchange: Exchange, head: RequestHead, answer: ResponseHead) -> Connection | None:
        if head.method == "POST":
            self._report(exchange.transport.posted(head, answer, exchange.method))
        stream = _stream_of(exchange, head)
        if stream is None:
            return None
        facts, connection = stream.responded(head, answer, exchange.attempt)
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
        self._report(self._client.evictions())

    # -- taps on one response --------------------------------------------------------------------

    def _tap_text(self, response: Any, connection: Connection) -> None:  # noqa: C901 - two closures over one flag
        read, close = response.aiter_text, response.aclose
        feed, report, fail, over = connection.feed, self._report, self._fail, self._over
        reading = False

        async def aiter_text(chunk_size: int | None = None) -> AsyncIterator[str]:
            nonlocal reading
            texts = read() if chunk_size is None else read(chunk_size)
            reading = True
            try:
                async for text in texts:
                    try:
                        facts = feed(text)
                        if facts:
                            report(facts)
                    except Exception as error:  # noqa: BLE001 - ours alone, and without a wrapper around every message
                        fail(error)
                    reading = False
                    yield text
                    reading = True
            except GeneratorExit:
                await texts.aclose()  # as the consumer would have done itself
                raise
            except Exception:
                over(connection, Disconnect.RESET)
                raise
            except BaseException:
                over(connection, Disconnect.CANCELLED)
                raise
            else:
                over(connection, Disconnect.CLOSED)

        async def aclose() -> None:
            if not reading:  # at the end of a body the HTTP library closes the response by itself
                over(connection, Disconnect.CANCELLED, by_sdk=sys.exc_info()[0] is None)
            await close()

        response.aiter_text = aiter_text
        response.aclose = aclose

    def _tap_body(self, response: Any, exchange: Exchange) -> None:
        """The tool list of a server that answers in JSON: which tools may be called twice."""
        read = response.aread
        learn = exchange.transport.tools_listed

        async def aread() -> bytes:
            body: bytes = await read()
            self._learned(learn, body)
            return body

        response.aread = aread

    def _learn(self, learn: Callable[[str], None], body: bytes) -> None:
        learn(body.decode("utf-8", "replace"))


def _stream_of(exchange: Exchange, head: RequestHead) -> ClientStream | None:
    """The stream that a response belongs to. Over HTTP+SSE a POST has none: the answer comes on the session's."""
    if head.method == "POST" and exchange.transport.generation is Generation.SSE:
        return None
    return exchange.stream

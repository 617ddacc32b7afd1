"""The streamable HTTP client of the SDK, 1.12 to 2.3: which exchange a request belongs to, and how it ends."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from otel_mcp_resume.rules.terms import Stream
from otel_mcp_resume.sdk.contexts import put_back
from otel_mcp_resume.sdk.exchange import EXCHANGE, Exchange
from otel_mcp_resume.sdk.http_pool import LEAVING, install_pool_hooks
from otel_mcp_resume.sdk.http_tap import HttpTap, authorised
from otel_mcp_resume.watch.exchange import Leaving
from otel_mcp_resume.watch.jsonrpc import id_text

if TYPE_CHECKING:
    from otel_mcp_resume.sdk.runtime import Runtime
    from otel_mcp_resume.watch.client_stream import ClientStream
    from otel_mcp_resume.watch.transport import ClientTransport

__all__ = ["HOOKS", "install"]

MODULE = "mcp.client.streamable_http"
TRANSPORT = "StreamableHTTPTransport"

GET_STREAM = f"{TRANSPORT}.handle_get_stream"
POST = f"{TRANSPORT}._handle_post_request"
RESUMPTION = f"{TRANSPORT}._handle_resumption_request"
WRITER = f"{TRANSPORT}.post_writer"
TERMINATE = f"{TRANSPORT}.terminate_session"
HTTP_LIBRARIES = ("httpx", "httpx2")
"""mcp 1.x uses the first, 2.x the second."""

HOOKS = (GET_STREAM, POST, RESUMPTION, WRITER, TERMINATE)

Begin = Callable[[Any, tuple[Any, ...], Mapping[str, Any]], "Exchange | None"]


def http_hooks() -> tuple[str, ...]:
    """The hooks on the HTTP library that the client of the SDK has imported: no other one is imported by us."""
    return tuple(f"{library}.AsyncClient.send" for library in HTTP_LIBRARIES if library in sys.modules)


def install(runtime: Runtime) -> None:
    """Puts all hooks in place that this version of the SDK has. The missing ones are reported by the patches."""
    for hook in http_hooks():
        tap = HttpTap(runtime, hook)
        runtime.patches.install(hook, hook.partition(".")[0], "AsyncClient.send", tap.wrapper())
    install_pool_hooks(runtime)
    ClientHooks(runtime).install()


class ClientHooks:
    """The wrappers of the transport's methods. What they note is noted behind the guard."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._watch = runtime.client
        self._transports: WeakKeyDictionary[Any, ClientTransport] = WeakKeyDictionary()
        self._tap = HttpTap(runtime, "AsyncClient.send")

    def install(self) -> None:
        """Wraps the five methods."""
        install = self._runtime.patches.install
        for hook, begin in ((GET_STREAM, self._standalone), (POST, self._post), (RESUMPTION, self._resumption)):
            install(hook, MODULE, hook, self._exchange(hook, begin))
        install(WRITER, MODULE, WRITER, self._around(WRITER, before=None))
        install(TERMINATE, MODULE, TERMINATE, self._around(TERMINATE, before=self._leave))

    def _transport(self, instance: Any) -> ClientTransport:
        transport = self._transports.get(instance)
        if transport is None:
            transport = self._transports[instance] = self._watch.transport(str(instance.url))
        return transport

    # -- wrappers --------------------------------------------------------------------------------

    def _exchange(self, hook: str, begin: Begin) -> Any:
        guard = self._runtime.guard
        begins, finish = guard(hook, begin), guard(hook, self._finish)

        async def exchange_wrapper(
            wrapped: Callable[..., Awaitable[Any]], instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
        ) -> Any:
            exchange = begins(instance, args, kwargs)
            if not isinstance(exchange, Exchange):
                return await wrapped(*args, **kwargs)
            token, has_returned = EXCHANGE.set(exchange), False
            try:
                result = await wrapped(*args, **kwargs)
                has_returned = True
                return result
            finally:
                put_back(EXCHANGE, token)
                finish(exchange, has_returned=has_returned)

        return exchange_wrapper

    def _around(self, hook: str, before: Callable[[Any], Leaving] | None) -> Any:
        guard = self._runtime.guard
        starts = guard(hook, before) if before is not None else None
        ends = guard(hook, self._closed)

        async def around_wrapper(
            wrapped: Callable[..., Awaitable[Any]], instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
        ) -> Any:
            if starts is None:
                try:
                    return await wrapped(*args, **kwargs)
                finally:
                    ends(instance)
            leaving = LEAVING.set(starts(instance))
            try:
                return await wrapped(*args, **kwargs)
            finally:
                put_back(LEAVING, leaving)
                ends(instance)

        return around_wrapper

    # -- what they note --------------------------------------------------------------------------

    def _standalone(self, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Exchange:
        transport = self._transport(instance)
        http = args[0] if args else kwargs["client"]
        return Exchange(transport, http, transport.stream(Stream.STANDALONE))

    def _resumption(self, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Exchange:
        transport = self._transport(instance)
        context = args[0] if args else kwargs["ctx"]
        message = _message(context)
        stream = transport.stream(Stream.REQUEST, method=message.method, request_id=id_text(message.id))
        return Exchange(transport, context.client, stream, method=message.method)

    def _post(self, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Exchange:
        transport = self._transport(instance)
        context = args[0] if args else kwargs["ctx"]
        message = _message(context)
        method = getattr(message, "method", None)
        params = _members(getattr(message, "params", None))
        request_id = getattr(message, "id", None)
        if method is None or request_id is None:  # a notification, or the answer to a request of the server
            if method == "notifications/cancelled":
                transport.cancelled(id_text(params.get("requestId")))
            return Exchange(transport, context.client, None, method=method)
        if method == "subscriptions/listen":
            stream = transport.listen(id_text(request_id), params)
        else:
            stream = transport.stream(Stream.REQUEST, method=method, request_id=id_text(request_id))
        call = None
        if method == "tools/call":
            call = str(params.get("name")), params.get("arguments")
        return Exchange(transport, context.client, stream, method=method, call=call)

    def _finish(self, exchange: Exchange, *, has_returned: bool) -> None:
        try:
            self._tap.finish(exchange)
            if has_returned and exchange.stream is not None:
                self._given_up(exchange, exchange.stream)
        finally:
            exchange.let_go()
            if exchange.stream is not None:
                exchange.transport.finished(exchange.stream)

    def _given_up(self, exchange: Exchange, stream: ClientStream) -> None:
        """The SDK returned without an answer, though nobody cancelled it."""
        facts = stream.given_up()
        if not facts:
            return
        if exchange.call is not None:
            authorised(exchange, exchange.told)
            exchange.transport.call_left(*exchange.call)
        self._runtime.report(facts)

    def _leave(self, instance: Any) -> Leaving:
        transport = self._transport(instance)
        transport.leave()
        return Leaving(self._runtime.http_spans.current(), transport.generation, transport.session_id, None, None)

    def _closed(self, instance: Any) -> None:
        self._runtime.report(self._transport(instance).closed())


def _members(params: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", params) if isinstance(params, (dict, Mapping)) else {}  # the ABC takes its time


def _message(context: Any) -> Any:
    """The JSON-RPC message; 1.x wraps it in a root model."""
    message = context.session_message.message
    return getattr(message, "root", message)

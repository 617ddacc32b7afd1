"""One client transport: an endpoint, the session it was given, and its streams."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import SplitResult, parse_qs, urlsplit

from otel_mcp_resume.rules.terms import Generation, Side, Stream, ViolationRule
from otel_mcp_resume.watch.asked import Asked
from otel_mcp_resume.watch.client_stream import ClientStream
from otel_mcp_resume.watch.exchange import RequestHead, ResponseHead, context_of
from otel_mcp_resume.watch.facts import Context, Fact, Node, SessionClosed, SessionOpened, Violated

if TYPE_CHECKING:
    from otel_mcp_resume.watch.client import ClientWatch
    from otel_mcp_resume.watch.connection import Connection

__all__ = ["ClientTransport", "session_in_url"]

_SESSION_PARAMETERS = ("session_id", "sessionId", "sessionid")
"""How the `endpoint` of an HTTP+SSE server names its session: Python, TypeScript and others."""

LISTENS = 64
"""Filters of subscriptions of one client that are remembered. The oldest is forgotten first."""


def session_in_url(url: str) -> str | None:
    """The session id in an HTTP+SSE message URL; None if it names none."""
    query = parse_qs(_split(url).query)
    return next((query[name][0] for name in _SESSION_PARAMETERS if name in query), None)


def _split(url: str) -> SplitResult:
    """The parts of a URL; none of one that is broken, which is for the SDK to complain about."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # only read here is it looked at
    except ValueError:
        return urlsplit("")
    return parts


class ClientTransport:
    """What is known of one transport object of an SDK."""

    __slots__ = (
        "__weakref__",
        "_began",
        "_key",
        "_lost_listens",
        "_peer",
        "_requests",
        "address",
        "asked",
        "credential",
        "generation",
        "leaving",
        "node",
        "origin",
        "port",
        "session_id",
        "standalone",
        "watch",
    )

    def __init__(self, watch: ClientWatch, url: str) -> None:
        parts = _split(url)
        self.watch = watch
        self.origin = f"{parts.scheme}://{parts.netloc}".lower()
        self._peer = f"{self.origin}{parts.path.rstrip('/')}?{parts.query}"
        """The server. One origin may have many, each with tools of its own."""
        self.address = parts.hostname
        self.port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        self.generation = Generation.STREAMABLE_HTTP
        self.session_id: str | None = None
        self.node = Node()
        self.leaving = False
        """The application is on its way out; what is refused or cut from now on was not wanted."""
        self.standalone: ClientStream | None = None
        self.asked: Asked | None = None
        """What awaits its answer on the stream of the session; None where each request has a stream of its own."""
        self.credential: int | None = None
        """The hash of what the latest call was authorised with, or before that the first request that was answered.
        While no call of any transport is left, only those of HTTP+SSE are looked at."""
        self._began = watch.clock()
        self._key = object()
        """Tells this transport from others, and keeps nothing of it alive."""
        self._requests: dict[str, ClientStream] = {}
        self._lost_listens: dict[int, ClientStream] = {}

    @classmethod
    def legacy(cls, watch: ClientWatch, url: str) -> ClientTransport:
        """One of HTTP+SSE."""
        transport = cls(watch, url)
        transport.generation = Generation.SSE
        transport.asked = Asked()
        return transport

    # -- streams ---------------------------------------------------------------------------------

    def stream(self, kind: Stream, *, method: str | None = None, request_id: str | None = None) -> ClientStream:
        """A logical stream begins."""
        stream = ClientStream(self, kind, method=method, request_id=request_id)
        with self.watch.lock:
            self.watch.streams.add(stream)
            if request_id is not None:
                self._requests[request_id] = stream
        return stream

    def listen(self, request_id: str, params: Any) -> ClientStream:
        """A subscription begins. One with the filter of a lost one re-opens it, though under a new request id."""
        stream = self.stream(Stream.LISTEN, method="subscriptions/listen", request_id=request_id)
        with self.watch.lock:
            self.watch.listens[request_id] = stream
        wanted = hash(json.dumps(_without_meta(params), sort_keys=True, default=str))
        before = self._lost_listens.pop(wanted, None)
        if before is not None and before.lost:
            stream.reopened = True
            stream.ended_at = before.ended_at
            stream.cut = before.cut
            stream.session_id = before.session_id
        self._lost_listens[wanted] = stream
        if len(self._lost_listens) > LISTENS:
            del self._lost_listens[next(iter(self._lost_listens))]
        return stream

    def finished(self, stream: ClientStream) -> None:
        """The exchange that a stream belongs to is over."""
        with self.watch.lock:
            if stream.request_id is not None and self._requests.get(stream.request_id) is stream:
                del self._requests[stream.request_id]
            if stream.request_id is not None and self.watch.listens.get(stream.request_id) is stream:
                del self.watch.listens[stream.request_id]
        stream.dispose()

    def cancelled(self, request_id: str) -> None:
        """The application gave a request up and says so; nothing is owed for it any more."""
        with self.watch.lock:
            stream = self._requests.get(request_id)
            if stream is not None:
                stream.cancelled = True

    # -- the session -----------------------------------------------------------------------------

    def posting(self, request: RequestHead, method: str | None) -> Sequence[Fact]:
        """A POST is about to be sent."""
        return self.watch.session_used(self, request.session_id, method)

    def posted(self, request: RequestHead, response: ResponseHead, method: str | None) -> Sequence[Fact]:
        """A POST was answered. Sessions are learned from 2xx responses only."""
        if self.asked is not None and 400 <= response.status < 500:
            self.asked.refused()
        if response.status == 404:
            with self.watch.lock:
                self.watch.session_died(self.origin, request.session_id)
        if not 200 <= response.status < 300:
            return ()
        self.watch.session_lives(self.origin, request.session_id)
        if self.generation is not Generation.SSE:
            self.generation = request.generation
        if method != "initialize" or response.session_id is None:
            return ()
        with self.watch.lock:
            self.watch.session_began(self.origin, response.session_id)
            return self._session_is(response.session_id)

    def _session_is(self, session_id: str) -> Sequence[Fact]:
        known = self.session_id is not None
        self.session_id = session_id
        if known or self.leaving:
            return ()
        return (SessionOpened(Side.CLIENT, self.generation, self.node, self.session_context(session_id)),)

    def endpoint_named(self, connection: Connection, endpoint: str, facts: list[Fact]) -> None:
        """An HTTP+SSE server told where to post, and with that which session this is."""
        session_id = session_in_url(endpoint)
        if self.generation is not Generation.SSE or session_id is None:
            return
        with self.watch.lock:
            facts += connection.session_named(session_id)
            connection.stream.session_id = session_id
            self.watch.session_began(self.origin, session_id)
            facts += self._session_is(session_id)

    def leave(self) -> None:
        """The application ends the session."""
        self.leaving = True

    def closed(self) -> Sequence[Fact]:
        """The transport is over. Harmless if that was known already."""
        self.leaving = True
        with self.watch.lock:
            known, self.session_id = self.session_id, None
        return (SessionClosed(Side.CLIENT, self.generation, self.node),) if known is not None else ()

    # -- calls -----------------------------------------------------------------------------------

    def calling(self, tool: str, arguments: Any) -> Sequence[Fact]:
        """A `tools/call` is about to be sent."""
        if not self.watch.calls.repeats(
            self._peer, tool, arguments, self._key, began=self._began, credential=self.credential
        ):
            return ()
        rule = ViolationRule.DUPLICATE_CALL
        stream = Stream.REQUEST if self.asked is None else Stream.SESSION
        return (Violated(Side.CLIENT, self.generation, rule, stream, None, self.session_context(None)),)

    def call_left(self, tool: str, arguments: Any) -> None:
        """A `tools/call` ended without an answer, though it may have run."""
        self.watch.calls.left(self._peer, tool, arguments, self._key, credential=self.credential)

    def call_failed(self, tool: str, arguments: Any, *, was_sent: bool) -> None:
        """The POST of a `tools/call` ended without a response."""
        if self.asked is not None and not was_sent:
            self.asked.refused()
        elif was_sent and (self.asked is None or self.asked.failed()):
            self.call_left(tool, arguments)

    def answered(self, request_id: str, data: str) -> None:
        """A response arrived on the stream of the session."""
        if self.asked is None:
            return
        if self.asked.answered(request_id):
            self.tools_listed(data)
        elif (call := self.asked.answered_after_all(request_id)) is not None:
            self.watch.calls.answered(self._peer, *call, self._key)

    def cut(self) -> None:
        """The stream of the session ended, and not because the application left: what was asked stays unanswered."""
        if self.asked is not None and not self.leaving:
            for call in self.asked.left():
                self.call_left(*call)

    def tools_listed(self, data: str) -> None:
        """The response to a `tools/list`: it says which tools may be called twice."""
        self.watch.calls.tools_listed(self._peer, data)

    # -- for spans and records -------------------------------------------------------------------

    def context(self, stream: ClientStream, request: RequestHead | None, response: ResponseHead | None) -> Context:
        """What is known of an exchange."""
        return context_of(stream, request, response)

    def session_context(self, session_id: str | None) -> Context:
        """What is known of a POST that belongs to no stream."""
        shown = session_id if session_id is not None else self.session_id
        return Context(session_id=shown, server_address=self.address, server_port=self.port)


def _without_meta(params: Any) -> Any:
    if not isinstance(params, Mapping):
        return params
    members = cast("Mapping[str, Any]", params)
    return {key: value for key, value in members.items() if key != "_meta"}

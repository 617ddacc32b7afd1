"""The SDK's streamable HTTP transport of one session, with or without a manager: what enters it and what it routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from otel_mcp_resume.sdk.server_http import current_exchange
from otel_mcp_resume.sdk.server_messages import WRAPPED, inner, kind_of, note_received, told_apart
from otel_mcp_resume.sdk.server_store import ObservedStore
from otel_mcp_resume.sdk.server_streams import ObservedStreams
from otel_mcp_resume.watch.server_session import NOTIFICATION, RESPONSE, Session

if TYPE_CHECKING:
    import wrapt

    from otel_mcp_resume.sdk.runtime import Runtime

    Proxy = wrapt.ObjectProxy[Any]
else:
    from wrapt import ObjectProxy as Proxy

__all__ = ["TransportHooks", "observe_connection", "observe_receive", "observe_send"]

Note = Callable[[Any], None]


class TransportHooks:
    """What is put into a transport, once for each."""

    def __init__(self, runtime: Runtime, standalone: str) -> None:
        """`standalone` is the SDK's name of the stream that belongs to no request."""
        self._runtime = runtime
        self._standalone = standalone

    def adopt(self, transport: Any, hook: str, *, is_late: bool = True) -> Session:
        """The session of a transport, whose parts are observed from now on.

        One that is connected already is late, unless this is the moment of its connection.
        """
        streams, store = transport._request_streams, transport._event_store  # noqa: SLF001 - what is hooked into
        if isinstance(streams, ObservedStreams):
            session = streams.session
        else:
            session = self._runtime.server.session(
                transport.mcp_session_id,
                standalone=self._standalone,
                is_stored=store is not None,
                is_json=bool(transport.is_json_response_enabled),
                is_blind=is_late and transport._read_stream_writer is not None,  # noqa: SLF001 - see above
            )
            transport._request_streams = ObservedStreams(session, streams, self._runtime, hook)  # noqa: SLF001 - see above
        if store is not None and not isinstance(store, ObservedStore):
            session.is_stored = True
            transport._event_store = ObservedStore(store, session, self._runtime, hook)  # noqa: SLF001 - see above
        return session

    def init_wrapper(self, hook: str) -> Any:
        """Around `__init__`."""
        adopt = self._runtime.guard(hook, self.adopt)

        def init_wrapper(
            wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
        ) -> Any:
            wrapped(*args, **kwargs)
            adopt(instance, hook)

        return init_wrapper

    def terminate_wrapper(self, hook: str) -> Any:
        """Around `terminate`."""
        ended = self._runtime.guard(hook, partial(self._ended, hook))

        async def terminate_wrapper(
            wrapped: Callable[..., Awaitable[Any]], instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
        ) -> Any:
            try:
                return await wrapped(*args, **kwargs)
            finally:
                ended(instance)

        return terminate_wrapper

    def connect_wrapper(self, hook: str) -> Any:
        """Around `connect`, whose context is the life of the session."""
        guard, report = self._runtime.guard, self._runtime.report
        observes = guard(hook, observe_connection)

        def connected(transport: Any, _: Any) -> None:
            session = self.adopt(transport, hook, is_late=False)
            received = guard(hook, partial(self._received, session))
            routed = _Routing(session, self._standalone, report)
            observe_send(transport._read_stream_writer, received)  # noqa: SLF001 - what is hooked into
            if not session.is_stored:  # otherwise the store sees each message, at the same moment
                observe_receive(transport._write_stream_reader, routed.note, guard.fail(hook))  # noqa: SLF001 - see above

        def connect_wrapper(
            wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
        ) -> Any:
            context = wrapped(*args, **kwargs)
            begin, end = guard(hook, partial(connected, instance)), guard(hook, partial(self._ended, hook, instance))
            return observes(context, begin, end) or context

        return connect_wrapper

    def _ended(self, hook: str, transport: Any) -> None:
        self._runtime.report(self.adopt(transport, hook).end())

    def _received(self, session: Session, item: Any) -> None:
        exchange = current_exchange()
        if exchange is not None:
            facts = note_received(session, exchange, item)
            if facts:
                self._runtime.report(facts)


class _Routing:
    """Where the SDK's router sends a message: with its response, with its request, or on the standalone stream."""

    __slots__ = ("_report", "_session", "_standalone")

    def __init__(self, session: Session, standalone: str, report: Callable[[Any], None]) -> None:
        self._session = session
        self._standalone = standalone
        self._report = report

    def note(self, item: Any) -> None:
        """The router has taken `item`, and looks for its stream next."""
        session, message, metadata = self._session, item.message, item.metadata
        kind = kind_of[type(message)]
        if kind == WRAPPED:
            kind = kind_of[type(message.root)]
        if kind == NOTIFICATION and not session.pending:
            related = None if metadata is None else getattr(metadata, "related_request_id", None)
            facts = session.emitted(self._standalone if related is None else str(related))
            if facts:
                self._report(facts)
            return
        kind, request_id, learned = told_apart(session, message)
        if kind == RESPONSE and request_id != "None":
            name = request_id
        else:
            related = getattr(metadata, "related_request_id", None)
            name = self._standalone if related is None else str(related)
        facts = [*learned, *session.emitted(name, kind, request_id)]
        if facts:
            self._report(facts)


class _Connection(Proxy):
    """An asynchronous context manager, and nothing else of it."""

    def __init__(self, context: Any, begin: Note, end: Callable[[], None]) -> None:
        super().__init__(context)
        self._self_begin = begin
        self._self_end = end

    async def __aenter__(self) -> Any:
        streams = await self.__wrapped__.__aenter__()
        self._self_begin(streams)
        return streams

    async def __aexit__(self, *exc_info: object) -> Any:
        try:
            return await self.__wrapped__.__aexit__(*exc_info)
        finally:
            self._self_end()


def observe_connection(context: Any, begin: Note, end: Callable[[], None]) -> Any:
    """`context`, with `begin(streams)` called once it is entered and `end()` once it is left. Neither may raise."""
    return _Connection(context, begin, end)


def observe_send(stream: Any, note: Note) -> None:
    """Calls `note(item)` before each item is sent into an SDK stream. `note` must not raise."""
    below, has_pairs = inner(stream)
    send = below.send

    async def observed_send(item: Any) -> None:
        note(item[1] if has_pairs else item)
        await send(item)

    below.send = observed_send


def observe_receive(stream: Any, note: Note, fail: Callable[[Exception], None]) -> None:
    """Calls `note(item)` for each item that is received from an SDK stream, at that very moment.

    The path of every message: what `note` raises is handed to `fail` without a wrapper around it.
    """
    below, has_pairs = inner(stream)
    receive = below.receive

    async def observed_receive() -> Any:
        item = await receive()
        try:
            note(item[1] if has_pairs else item)
        except Exception as error:  # noqa: BLE001 - ours alone: the stream is outside
            fail(error)
        return item

    below.receive = observed_receive

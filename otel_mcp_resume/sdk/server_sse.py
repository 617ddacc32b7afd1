"""The HTTP+SSE server of the SDK: one GET is one session, and its one stream carries everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from otel_mcp_resume.rules.terms import Generation
from otel_mcp_resume.sdk.server_http import observed_request
from otel_mcp_resume.sdk.server_messages import inner, note_received, told_apart
from otel_mcp_resume.sdk.server_transport import observe_connection, observe_receive

if TYPE_CHECKING:
    from otel_mcp_resume.sdk.runtime import Runtime
    from otel_mcp_resume.sdk.server_send import Channels
    from otel_mcp_resume.watch.server_session import Session

__all__ = ["HOOKS", "install"]

MODULE = "mcp.server.sse"
CONNECT = "SseServerTransport.connect_sse"

HOOKS = (CONNECT,)

_STREAM = "session"


def install(runtime: Runtime) -> None:
    """Puts the hook in place. A missing one is reported by the patches."""
    runtime.patches.install(CONNECT, MODULE, CONNECT, SseHooks(runtime).wrapper())


class _Begun(NamedTuple):
    session: Session
    channels: Channels
    arguments: tuple[tuple[Any, ...], Mapping[str, Any]]


class SseHooks:
    """The wrapper of `connect_sse`, an asynchronous context manager that lives as long as its session."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def wrapper(self) -> Any:
        """Around `connect_sse`."""
        guard = self._runtime.guard
        begin, observes = guard(CONNECT, self._begin), guard(CONNECT, observe_connection)

        def sse_wrapper(
            wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
        ) -> Any:
            begun = begin(args, kwargs)
            if not isinstance(begun, _Begun):
                return wrapped(*args, **kwargs)
            session, channels, (args, kwargs) = begun
            context = wrapped(*args, **kwargs)
            entered = guard(CONNECT, partial(self._entered, session, channels))
            named = guard(CONNECT, partial(_name, instance, session))
            left = guard(CONNECT, partial(self._left, session, channels))

            def begun_streams(streams: Any) -> None:
                named(streams[0])
                entered(streams)

            return observes(context, guard(CONNECT, begun_streams), left) or context

        return sse_wrapper

    def _begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Begun | None:
        observed = observed_request(
            self._runtime, self._runtime.guard.fail(CONNECT), args, kwargs, generation=Generation.SSE
        )
        if observed is None:
            return None
        channels, arguments = observed
        session = self._runtime.server.session("", standalone=_STREAM, generation=Generation.SSE)
        session.serve(channels.exchange)
        self._runtime.report(session.registered(_STREAM, channels.exchange))
        return _Begun(session, channels, arguments)

    def _entered(self, session: Session, channels: Channels, streams: Any) -> None:
        reader, writer = streams
        guard, exchange = self._runtime.guard, channels.exchange

        def received(item: Any) -> None:
            self._runtime.report(note_received(session, exchange, item))

        observe_receive(reader, guard(CONNECT, received), _ignore)
        self._observe_sending(session, writer)

    def _observe_sending(self, session: Session, stream: Any) -> None:
        """A message that its sender takes back before it was received is none; one that is too late is lost."""
        below, has_pairs = inner(stream)
        send = below.send
        sending = self._runtime.guard(CONNECT, partial(self._sending, session))
        unsent = self._runtime.guard(CONNECT, session.unsent)

        async def observed_send(item: Any) -> None:
            entry = sending(item[1] if has_pairs else item)
            try:
                await send(item)
            except Exception:
                raise
            except BaseException:
                if entry is not None:
                    unsent(entry)
                raise

        below.send = observed_send

    def _sending(self, session: Session, item: Any) -> Any:
        kind, request_id, facts = told_apart(session, item.message)
        entry, more = session.sending(_STREAM, kind, request_id)
        facts = [*facts, *more]
        if facts:
            self._runtime.report(facts)
        return entry

    def _left(self, session: Session, channels: Channels) -> None:
        self._runtime.report(session.end())
        channels.end(cancelled=False)


def _name(transport: Any, session: Session, reader: Any) -> None:
    """The session has the id under which the transport keeps the other end of its stream: the last one, mostly.

    It is told in an event, after the response has begun.
    """
    state = getattr(inner(reader)[0], "_state", None)  # what the two ends of a stream of anyio share
    writers = transport._read_stream_writers  # noqa: SLF001 - what is hooked into
    for session_id in reversed(writers):
        if state is not None and getattr(inner(writers[session_id])[0], "_state", None) is state:
            session.session_id = session_id.hex
            return


def _ignore(_: Exception) -> None:
    """What is guarded already raises nothing."""

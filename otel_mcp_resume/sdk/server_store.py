"""The event store of an application, observed on its way through one transport.

The proxy is what it stands for in every other respect: class, attributes, truth, equality.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from otel_mcp_resume.sdk.server_http import current_exchange
from otel_mcp_resume.sdk.server_messages import WRAPPED, kind_of, told_apart
from otel_mcp_resume.watch.seen import LONG_ID, shortened
from otel_mcp_resume.watch.server_replay import Replay
from otel_mcp_resume.watch.server_session import NOTIFICATION

if TYPE_CHECKING:
    import wrapt

    from otel_mcp_resume.sdk.runtime import Runtime
    from otel_mcp_resume.watch.server_session import Session

    Proxy = wrapt.ObjectProxy[Any]
else:
    from wrapt import ObjectProxy as Proxy

__all__ = ["ObservedStore"]

Report = Callable[[Any], None]
Method = Callable[..., Awaitable[Any]]


class ObservedStore(Proxy):
    """One store as one session sees it."""

    __slots__ = ("replay_events_after", "store_event")

    def __init__(self, store: Any, session: Session, runtime: Runtime, hook: str) -> None:
        super().__init__(store)
        fail = runtime.guard.fail(hook)
        self.store_event: Method = _observed_storing(store, session, runtime.report, fail)
        self.replay_events_after: Method = _observed_replaying(store, session, runtime.report, fail)


def _observed_storing(store: Any, session: Session, report: Report, fail: Callable[[Exception], None]) -> Method:
    """The path of every message that is kept: what it needs is bound once."""

    async def observed_store_event(stream_id: Any, message: Any, *args: Any, **kwargs: Any) -> Any:
        session.storing += 1
        try:
            if args or kwargs:
                event_id = await store.store_event(stream_id, message, *args, **kwargs)
            else:
                event_id = await store.store_event(stream_id, message)  # the SDK's own call; the other costs more
        except BaseException:
            _noted(fail, _failed, session, report, stream_id, message)
            raise
        try:
            is_long = isinstance(event_id, str) and len(event_id) > LONG_ID
            known = shortened(event_id) if is_long else event_id
            kind = kind_of[type(message)]
            if kind == WRAPPED:
                kind = kind_of[type(message.root)]
            if kind == NOTIFICATION and not session.pending:
                facts = session.stored(stream_id, known)
            elif message is None:
                facts = session.primed(stream_id, known)
            else:
                kind, request_id, learned = told_apart(session, message)
                facts = [*learned, *session.stored(stream_id, known, kind, request_id)]
            if facts:
                report(facts)
        except Exception as error:  # noqa: BLE001 - ours alone: the application's store is outside
            fail(error)
        return event_id

    return observed_store_event


def _observed_replaying(store: Any, session: Session, report: Report, fail: Callable[[Exception], None]) -> Method:
    """A resumed stream asks for what it missed."""

    async def observed_replay_events_after(last_event_id: Any, send_callback: Any, *args: Any, **kwargs: Any) -> Any:
        replay = _noted(fail, _begun, session)
        if not isinstance(replay, Replay):
            return await store.replay_events_after(last_event_id, send_callback, *args, **kwargs)

        async def observed_callback(event_message: Any, *args: Any, **kwargs: Any) -> Any:
            _noted(fail, _handed, replay, event_message.event_id)
            return await send_callback(event_message, *args, **kwargs)

        stream_id = await store.replay_events_after(last_event_id, observed_callback, *args, **kwargs)
        _noted(fail, lambda: report(replay.returned(stream_id)))
        return stream_id

    return observed_replay_events_after


def _noted(fail: Callable[[Exception], None], note: Callable[..., Any], *args: Any) -> Any:
    try:
        return note(*args)
    except Exception as error:  # noqa: BLE001 - see above
        fail(error)
        return None


def _begun(session: Session) -> Replay | None:
    exchange = current_exchange()
    return None if exchange is None or exchange.is_over else session.replay(exchange)


def _handed(replay: Replay, event_id: Any) -> None:
    replay.handed(shortened(event_id) if isinstance(event_id, str) else event_id)


def _failed(session: Session, report: Report, stream_id: Any, message: Any) -> None:
    if message is None:
        report(session.store_failed(stream_id, 0, "", is_message=False))
        return
    kind, request_id, facts = told_apart(session, message)
    report(facts)
    report(session.store_failed(stream_id, kind, request_id, is_message=True))

"""The event store of an application, observed on its way through one transport.

The proxy is what it stands for in every other respect: class, attributes, truth, equality.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from otel_mcp_resume.sdk.server_http import current_exchange
from otel_mcp_resume.sdk.server_messages import told_apart

if TYPE_CHECKING:
    import wrapt

    from otel_mcp_resume.sdk.runtime import Runtime
    from otel_mcp_resume.watch.server_replay import Replay
    from otel_mcp_resume.watch.server_session import Session

    Proxy = wrapt.ObjectProxy[Any]
else:
    from wrapt import ObjectProxy as Proxy

__all__ = ["ObservedStore"]


class ObservedStore(Proxy):
    """One store as one session sees it."""

    def __init__(self, store: Any, session: Session, runtime: Runtime, hook: str) -> None:
        super().__init__(store)
        self._self_session = session
        self._self_report = runtime.report
        self._self_fail = runtime.guard(hook, _raise)

    async def store_event(self, stream_id: Any, message: Any, *args: Any, **kwargs: Any) -> Any:
        """The router, or the beginning of a stream, stores."""
        session: Session = self._self_session
        session.storing += 1
        try:
            event_id = await self.__wrapped__.store_event(stream_id, message, *args, **kwargs)
        except BaseException:
            self._self_note(_failed, stream_id, message)
            raise
        try:
            if message is None:
                facts = session.primed(stream_id, event_id)
            else:
                kind, request_id, facts = told_apart(session, message)
                if facts:
                    self._self_report(facts)
                facts = session.stored(stream_id, event_id, kind, request_id)
            if facts:
                self._self_report(facts)
        except Exception as error:  # noqa: BLE001 - ours alone: the application's store is outside
            self._self_fail(error)
        return event_id

    async def replay_events_after(self, last_event_id: Any, send_callback: Any, *args: Any, **kwargs: Any) -> Any:
        """A resumed stream asks for what it missed."""
        replay = self._self_note(_begun)
        if replay is None:
            return await self.__wrapped__.replay_events_after(last_event_id, send_callback, *args, **kwargs)
        callback = self._self_observed(replay, send_callback)
        stream_id = await self.__wrapped__.replay_events_after(last_event_id, callback, *args, **kwargs)
        try:
            self._self_report(replay.returned(stream_id))
        except Exception as error:  # noqa: BLE001 - see above
            self._self_fail(error)
        return stream_id

    def _self_observed(self, replay: Replay, callback: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        fail = self._self_fail

        async def observed_callback(event_message: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                replay.handed(event_message.event_id)
            except Exception as error:  # noqa: BLE001 - see above
                fail(error)
            return await callback(event_message, *args, **kwargs)

        return observed_callback

    def _self_note(self, note: Callable[..., Any], *args: Any) -> Any:
        try:
            return note(self._self_session, self._self_report, *args)
        except Exception as error:  # noqa: BLE001 - see above
            self._self_fail(error)
            return None


def _begun(session: Session, _: Any) -> Replay | None:
    exchange = current_exchange()
    return None if exchange is None or exchange.is_over else session.replay(exchange)


def _failed(session: Session, report: Callable[[Any], None], stream_id: Any, message: Any) -> None:
    if message is None:
        report(session.store_failed(stream_id, 0, "", is_message=False))
        return
    kind, request_id, facts = told_apart(session, message)
    report(facts)
    report(session.store_failed(stream_id, kind, request_id, is_message=True))


def _raise(error: Exception) -> None:
    raise error

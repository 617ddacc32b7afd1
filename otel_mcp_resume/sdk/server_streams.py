"""`_request_streams` of the SDK's transport, observed: it decides where a message goes, and its change is the exact
moment at which a stream goes live.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otel_mcp_resume.sdk.server_http import current_exchange

if TYPE_CHECKING:
    from otel_mcp_resume.sdk.runtime import Runtime
    from otel_mcp_resume.watch.server_session import Session

__all__ = ["ObservedStreams"]


class ObservedStreams(dict[Any, Any]):
    """The dictionary itself. Its owner tells it from a plain one by nothing but its class."""

    __slots__ = ("_fail", "_report", "session")

    def __init__(self, session: Session, streams: dict[Any, Any], runtime: Runtime, hook: str) -> None:
        super().__init__(streams)
        self.session = session
        self._report = runtime.report
        self._fail = runtime.guard.fail(hook)
        for name in streams:  # the plugin came later than the transport
            runtime.report(session.registered(str(name), None))

    def _registered(self, name: Any) -> None:
        try:
            facts = self.session.registered(str(name), current_exchange())
            if facts:
                self._report(facts)
        except Exception as error:  # noqa: BLE001 - ours alone: the transport's own dictionary has changed before
            self._fail(error)

    def _unregistered(self, name: Any) -> None:
        try:
            self.session.unregistered(str(name))
        except Exception as error:  # noqa: BLE001 - see above
            self._fail(error)

    def __setitem__(self, name: Any, pair: Any) -> None:
        super().__setitem__(name, pair)
        self._registered(name)

    def __delitem__(self, name: Any) -> None:
        super().__delitem__(name)
        self._unregistered(name)

    def pop(self, name: Any, *default: Any) -> Any:
        pair = super().pop(name, *default)
        self._unregistered(name)
        return pair

    def popitem(self) -> tuple[Any, Any]:
        name, pair = super().popitem()
        self._unregistered(name)
        return name, pair

    def clear(self) -> None:
        names = list(self)
        super().clear()
        for name in names:
            self._unregistered(name)

    def setdefault(self, name: Any, pair: Any = None) -> Any:
        if name not in self:
            self[name] = pair
        return self[name]

    def update(self, *args: Any, **kwargs: Any) -> None:
        for name, pair in dict(*args, **kwargs).items():
            self[name] = pair

"""The subscriptions of the SDK's server (2026-07-28): the events that a full backlog drops.

Every `subscriptions/listen` has a backlog of bounded length between whoever publishes and the task that writes its
stream. An event that finds it full is discarded and the backlog closed: what it held is still written, what comes
before the stream has ended finds it closed. To the client this is an end in good order: only the server can count it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import anyio

from otel_mcp_resume.sdk.server_http import current_exchange
from otel_mcp_resume.versions import has_module

if TYPE_CHECKING:
    from otel_mcp_resume.sdk.runtime import Runtime
    from otel_mcp_resume.watch.server_exchange import Exchange

__all__ = ["HOOKS", "install"]

MODULE = "mcp.server.subscriptions"
LISTEN = "ListenHandler.__call__"

HOOKS = (LISTEN,) if has_module(MODULE) else ()
"""None in 1.x, which knows no subscriptions of this kind."""


def install(runtime: Runtime) -> None:
    """Puts the hook in place, if this version of the SDK has what it is for."""
    for hook in HOOKS:
        runtime.patches.install(hook, MODULE, hook, ListenHook(runtime).wrapper())


class ListenHook:
    """The wrapper of a handler's call: from the first one on, its backlogs are observed."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def wrapper(self) -> Any:
        """Around `__call__`."""
        adopts = self._runtime.guard(LISTEN, self._adopt)

        def listen_wrapper(
            wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
        ) -> Any:
            adopts(instance)
            return wrapped(*args, **kwargs)

        return listen_wrapper

    def _adopt(self, handler: Any) -> None:
        backlogs: Any = handler._streams  # noqa: SLF001 - what is hooked into
        if not (isinstance(backlogs, ObservedBacklogs) and backlogs.belongs_to(self._runtime)):
            handler._streams = ObservedBacklogs(backlogs, self._runtime)  # noqa: SLF001 - see above


class ObservedBacklogs(set[Any]):
    """The open backlogs of a handler, which outlives the plugin if that is taken away: then this is only a set."""

    def __init__(self, backlogs: Iterable[Any], runtime: Runtime) -> None:
        super().__init__(backlogs)
        self._runtime = runtime
        self._observed: dict[Any, _Backlog] = {}
        self._begins = runtime.guard(LISTEN, self._begin)
        self._ends = runtime.guard(LISTEN, self._end)

    def belongs_to(self, runtime: Runtime) -> bool:
        """Whether it reports there, and not to a plugin that was taken away since."""
        return self._runtime is runtime

    def add(self, backlog: Any) -> None:
        super().add(backlog)
        self._begins(backlog)

    def discard(self, backlog: Any) -> None:
        super().discard(backlog)
        self._ends(backlog)

    def _begin(self, backlog: Any) -> None:
        exchange = current_exchange()
        if exchange is not None and LISTEN in self._runtime.patches:  # on a pipe there is no exchange
            self._observed[backlog] = _Backlog(backlog, exchange, self._runtime)

    def _end(self, backlog: Any) -> None:
        observed = self._observed.get(backlog)
        if observed is not None and observed.left():
            del self._observed[backlog]


class _Backlog:
    """One backlog. What its `send_nowait` raises is what the SDK makes of it, and says which event is dropped."""

    __slots__ = ("_dropped", "_exchange", "_is_overflowing", "_report", "_stream", "has_overflowed")

    def __init__(self, stream: Any, exchange: Exchange, runtime: Runtime) -> None:
        self._stream = stream
        self._exchange = exchange
        self._report = runtime.report
        self._dropped = runtime.guard(LISTEN, self._drop)
        self._is_overflowing = False
        self.has_overflowed = False
        stream.send_nowait = self._observed(stream.send_nowait)

    def _observed(self, send_nowait: Callable[[Any], None]) -> Callable[[Any], None]:
        def observed_send_nowait(event: Any) -> None:
            try:
                send_nowait(event)
            except anyio.WouldBlock:
                self.has_overflowed = self._is_overflowing = True
                self._dropped(1)
                raise
            except anyio.ClosedResourceError:
                if self.has_overflowed:  # else the server has ended the subscription, and says so
                    self._dropped(1)
                raise

        return observed_send_nowait

    def left(self) -> bool:
        """The handler lets go of it. Whether for good: it does so too when the backlog overflows."""
        if self._is_overflowing:
            self._is_overflowing = False
            return False
        del self._stream.send_nowait  # it holds what holds it
        if self.has_overflowed:  # nobody reads on, so what was left in it goes the same way
            self._dropped(self._stream.statistics().current_buffer_used)
        return True

    def _drop(self, count: int) -> None:
        if count:
            self._report(self._exchange.dropped(count))

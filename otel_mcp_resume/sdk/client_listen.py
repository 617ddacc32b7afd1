"""The subscriptions of the SDK's client (2026-07-28): those that it gives up by itself.

When more events wait than the application takes, the SDK tells it that the subscription is lost, though the stream is
still open. On the wire that looks as if the application had had enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from otel_mcp_resume.versions import has_module
from otel_mcp_resume.watch.jsonrpc import id_text

if TYPE_CHECKING:
    from otel_mcp_resume.sdk.runtime import Runtime

__all__ = ["HOOKS", "install"]

SESSION_MODULE = "mcp.client.session"
MODULE = "mcp.client.subscriptions"

REGISTER = "ClientSession._register_listen_route"
SETTLE = "ListenRoute.settle"

HOOKS = (REGISTER, SETTLE) if has_module(MODULE) else ()
"""None in 1.x, which knows no subscriptions of this kind."""


def install(runtime: Runtime) -> None:
    """Puts the hooks in place, if this version of the SDK has what they are for."""
    if HOOKS:
        hooks = ListenHooks(runtime)
        runtime.patches.install(REGISTER, SESSION_MODULE, REGISTER, hooks.register_wrapper())
        runtime.patches.install(SETTLE, MODULE, SETTLE, hooks.settle_wrapper())


class ListenHooks:
    """The wrappers. A route is what the SDK knows of one subscription."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._ids: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def register_wrapper(self) -> Any:
        """Around `_register_listen_route`, which gives the route of a request id."""
        registered = self._runtime.guard(REGISTER, self._registered)

        def register_wrapper(
            wrapped: Callable[..., Any], _instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
        ) -> Any:
            route = wrapped(*args, **kwargs)
            registered(route, args[0] if args else kwargs.get("request_id"))
            return route

        return register_wrapper

    def settle_wrapper(self) -> Any:
        """Around `settle`, which is told why the subscription ends; the first reason holds."""
        settled = self._runtime.guard(SETTLE, self._settled)

        def settle_wrapper(
            wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
        ) -> Any:
            settled(instance, args[0] if args else kwargs.get("end"))
            return wrapped(*args, **kwargs)

        return settle_wrapper

    def _registered(self, route: Any, request_id: Any) -> None:
        self._ids[route] = id_text(request_id)

    def _settled(self, route: Any, end: Any) -> None:
        if end != "lost" or route.end is not None or route.honored is None:  # the last was never a subscription
            return
        request_id = self._ids.get(route)
        if request_id is not None:
            self._runtime.client.listen_lost(request_id)

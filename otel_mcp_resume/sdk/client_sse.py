"""The HTTP+SSE client of the SDK: one stream that is the session, and posts beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from otel_mcp_resume.rules.terms import Stream
from otel_mcp_resume.sdk.client import http_hooks
from otel_mcp_resume.sdk.contexts import put_back
from otel_mcp_resume.sdk.exchange import EXCHANGE, Exchange
from otel_mcp_resume.sdk.http_pool import install_pool_hooks
from otel_mcp_resume.sdk.http_tap import HttpTap

if TYPE_CHECKING:
    from otel_mcp_resume.sdk.runtime import Runtime

__all__ = ["HOOKS", "install"]

SSE_CLIENT = "sse_client"
HOOKS = (SSE_CLIENT,)


def install(runtime: Runtime) -> None:
    """Puts the hooks in place."""
    for hook in http_hooks():
        runtime.patches.install(hook, hook.partition(".")[0], "AsyncClient.send", HttpTap(runtime, hook).wrapper())
    install_pool_hooks(runtime)
    runtime.patches.install(SSE_CLIENT, "mcp.client.sse", SSE_CLIENT, SseClientHook(runtime).wrapper())


class SseClientHook:
    """The wrapper of `sse_client`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._begins = runtime.guard(SSE_CLIENT, self._begin)
        self.leaves = runtime.guard(SSE_CLIENT, self._leave)
        self.ends = runtime.guard(SSE_CLIENT, self._end)

    def wrapper(self) -> Any:
        """Wraps the context manager that `sse_client` returns."""

        def sse_client(
            wrapped: Callable[..., Any], _instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
        ) -> Any:
            manager = wrapped(*args, **kwargs)
            watched = self._begins(manager, args[0] if args else kwargs.get("url"))
            return watched if isinstance(watched, _WatchedSession) else manager

        return sse_client

    def _begin(self, manager: Any, url: Any) -> _WatchedSession:
        transport = self._runtime.client.legacy_transport(str(url))
        return _WatchedSession(manager, self, Exchange(transport, None, transport.stream(Stream.SESSION)))

    def _leave(self, exchange: Exchange) -> None:
        exchange.transport.leave()

    def _end(self, exchange: Exchange) -> None:
        self._runtime.report(exchange.transport.closed())
        if exchange.stream is not None:
            exchange.transport.finished(exchange.stream)


class _WatchedSession:
    """The context manager of a session. Its tasks start while it is entered, and inherit the exchange."""

    def __init__(self, manager: Any, hook: SseClientHook, exchange: Exchange) -> None:
        self._manager = manager
        self._hook = hook
        self._exchange = exchange

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)

    async def __aenter__(self) -> Any:
        token = EXCHANGE.set(self._exchange)
        try:
            return await self._manager.__aenter__()
        except BaseException:
            self._hook.ends(self._exchange)
            raise
        finally:
            put_back(EXCHANGE, token)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Any:
        self._hook.leaves(self._exchange)
        try:
            return await self._manager.__aexit__(kind, error, traceback)
        finally:
            self._hook.ends(self._exchange)

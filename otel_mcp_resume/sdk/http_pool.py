"""The connection pool below the HTTP client: where a request leaves, inside whatever instruments the client.

An instrumentation wraps the transport, before or after us, for one client or for all. The pool is always inside of it,
so its span is the current one there. Where no MCP exchange is under way, that costs one look at a context variable.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING, Any

import wrapt

from otel_mcp_resume.rules.terms import Generation
from otel_mcp_resume.watch.exchange import Leaving

if TYPE_CHECKING:
    from otel_mcp_resume.sdk.runtime import Runtime

__all__ = ["LEAVING", "install_pool_hooks"]

_LIBRARIES = ("httpcore", "httpcore2")
_METHOD = "AsyncConnectionPool.handle_async_request"


LEAVING: ContextVar[Leaving | None] = ContextVar("otel_mcp_resume_leaving", default=None)
"""Set around `send` by the coroutine that awaits it."""


_latest: dict[str, Runtime] = {}
"""By library: whose hook is put in place when it is imported. A registration for that can't be taken back."""


def install_pool_hooks(runtime: Runtime) -> None:
    """Puts the hooks in place as soon as their libraries are imported: a server never does, and they weigh much."""
    for library in _LIBRARIES:
        is_known = library in _latest
        _latest[library] = runtime
        if not is_known:
            wrapt.register_post_import_hook(_imported, library)  # calls at once, if it is imported already
        elif library in sys.modules:
            _install(runtime, library)


def _imported(module: ModuleType) -> None:
    runtime = _latest[module.__name__]
    runtime.guard(f"{module.__name__}.{_METHOD}", _install)(runtime, module.__name__)


def _install(runtime: Runtime, library: str) -> None:
    hook = f"{library}.{_METHOD}"
    runtime.patches.install(hook, library, _METHOD, _wrapper(runtime, hook))


def _wrapper(runtime: Runtime, hook: str) -> Any:
    mark_client = runtime.http_spans.mark_client

    def mark(leaving: Leaving, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        request = args[0] if args else kwargs["request"]
        session_id, is_of_mcp = _read(request.headers)
        if is_of_mcp or leaving.generation is Generation.SSE:
            mark_client(leaving._replace(session_id=session_id or leaving.session_id))
            return True
        return False

    def mark_answered(leaving: Leaving, response: Any) -> None:
        """A session that begins has its name from the response, and the span is open until its head is there."""
        session_id, _ = _read(response.headers)
        if session_id is not None:
            mark_client(leaving._replace(session_id=session_id))

    guard = runtime.guard
    marks, marks_answered = guard(hook, mark), guard(hook, mark_answered)
    has_client = guard(hook, runtime.http_spans.has_client)

    async def watched(leaving: Leaving, wrapped: Callable[..., Awaitable[Any]], args: Any, kwargs: Any) -> Any:
        is_of_mcp = marks(leaving, args, kwargs)
        response = await wrapped(*args, **kwargs)
        if is_of_mcp and leaving.session_id is None:
            marks_answered(leaving, response)
        return response

    def pool_wrapper(
        wrapped: Callable[..., Awaitable[Any]], _: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Awaitable[Any]:
        leaving = LEAVING.get()
        if leaving is None or not has_client(leaving):
            return wrapped(*args, **kwargs)
        return watched(leaving, wrapped, args, kwargs)

    return pool_wrapper


def _read(headers: Iterable[tuple[bytes, bytes]]) -> tuple[str | None, bool]:
    """The session that a head names, and whether a request is MCP's own, not one for an access token on the way."""
    session_id, is_of_mcp = None, False
    for name, value in headers:
        lower = name.lower()
        if lower == b"mcp-session-id":
            session_id, is_of_mcp = value.decode("latin-1"), True
        elif lower == b"accept" and b"text/event-stream" in value:
            is_of_mcp = True
    return session_id, is_of_mcp

"""The connection pool below the HTTP client: where a request leaves, inside whatever instruments the client.

An instrumentation wraps the transport, before or after us, for one client or for all. The pool is always inside of it,
so its span is the current one there. Where no MCP exchange is under way, that costs one look at a context variable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from otel_mcp_resume.rules.terms import Generation, Stream

if TYPE_CHECKING:
    from otel_mcp_resume.sdk.runtime import Runtime

__all__ = ["LEAVING", "Leaving", "install_pool_hooks"]

_LIBRARIES = ("httpcore", "httpcore2")
_METHOD = "AsyncConnectionPool.handle_async_request"


class Leaving(NamedTuple):
    """A request of an exchange that is on its way out."""

    before: object
    """The span that was current before the HTTP client had it."""
    generation: Generation
    session_id: str | None
    stream: Stream | None
    token: str | None


LEAVING: ContextVar[Leaving | None] = ContextVar("otel_mcp_resume_leaving", default=None)
"""Set around `send` by the coroutine that awaits it."""


def install_pool_hooks(runtime: Runtime) -> None:
    """Puts the hooks in place of the libraries that this environment has."""
    for library in _LIBRARIES:
        if find_spec(library) is not None:
            hook = f"{library}.{_METHOD}"
            runtime.patches.install(hook, library, _METHOD, _wrapper(runtime, hook))


def _wrapper(runtime: Runtime, hook: str) -> Any:
    def mark(args: tuple[Any, ...], kwargs: Mapping[str, Any], leaving: Leaving) -> None:
        request = args[0] if args else kwargs["request"]
        if leaving.generation is Generation.SSE or _is_of_mcp(request.headers):
            runtime.http_spans.mark_client(*leaving)

    marks = runtime.guard(hook, mark)

    def pool_wrapper(wrapped: Callable[..., Any], _: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        leaving = LEAVING.get()
        if leaving is not None:
            marks(args, kwargs, leaving)
        return wrapped(*args, **kwargs)

    return pool_wrapper


def _is_of_mcp(headers: Any) -> bool:
    """Whether it is the request itself, and not one that is made on the way, such as for an access token."""
    for name, value in headers:
        lower = name.lower()
        if lower == b"mcp-session-id" or (lower == b"accept" and b"text/event-stream" in value):
            return True
    return False

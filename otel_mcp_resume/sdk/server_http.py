"""The HTTP entry points of the SDK's server: which exchange is under way, however many of them a request passes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from otel_mcp_resume.rules.terms import Generation
from otel_mcp_resume.sdk.contexts import put_back
from otel_mcp_resume.sdk.server_send import Channels
from otel_mcp_resume.watch.server_request import Request

if TYPE_CHECKING:
    from otel_mcp_resume.sdk.runtime import Runtime
    from otel_mcp_resume.watch.calls import Tools
    from otel_mcp_resume.watch.server_exchange import Exchange

__all__ = ["Handling", "HttpHooks", "Told", "current_exchange", "observed_request"]

Scope = Mapping[str, Any]
Arguments = tuple[tuple[Any, ...], Mapping[str, Any]]
Entered = Callable[[Any, "Exchange"], None]
Told = dict[bytes, str]
"""Those headers of a request that are looked at."""

_WANTED = frozenset(
    (
        b"authorization",
        b"forwarded",
        b"last-event-id",
        b"mcp-method",
        b"mcp-protocol-version",
        b"mcp-session-id",
        b"x-api-key",
        b"x-forwarded-for",
    )
)


_MARKS = (b"authorization", b"x-api-key", b"forwarded", b"x-forwarded-for")
"""What tells one client from another, beside its address."""


class Carrier(Mapping[str, str]):
    """The headers of a request, decoded when they are asked for."""

    __slots__ = ("_headers",)

    def __init__(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        self._headers = headers

    def __getitem__(self, name: str) -> str:
        wanted = name.lower().encode("latin-1", "replace")
        for known, value in self._headers:
            if known == wanted:
                return value.decode("latin-1")
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name, _ in self._headers)

    def __len__(self) -> int:
        return len(self._headers)


_NOTHING: Arguments = ((), {})


class Handling:
    """A request that is being handled: its scope tells it from a request that a handler of it makes in turn."""

    __slots__ = ("arguments", "channels", "scope")

    def __init__(self, scope: Scope, channels: Channels, arguments: Arguments) -> None:
        self.scope: Scope | None = scope
        self.channels: Channels | None = channels
        self.arguments = arguments
        """What the entry point is called with instead."""

    def end(self, *, cancelled: bool) -> None:
        """It is over. Tasks of a session that it began keep it in their context as long as they live: it lets go."""
        channels, self.channels = self.channels, None
        self.scope = None
        self.arguments = _NOTHING
        if channels is not None:
            channels.end(cancelled=cancelled)


_CURRENT: ContextVar[Handling | None] = ContextVar("otel_mcp_resume_server_exchange", default=None)


def current_exchange() -> Exchange | None:
    """The exchange in whose context this code runs; a session's own tasks still see the one that began it."""
    handling = _CURRENT.get()
    return None if handling is None or handling.channels is None else handling.channels.exchange


class _Entry(NamedTuple):
    """What one entry point is about."""

    generation: Callable[[Told], Generation]
    entered: Entered
    fail: Callable[[Exception], None]


class HttpHooks:
    """Wrappers for functions whose last three arguments are `scope, receive, send`."""

    def __init__(self, runtime: Runtime, tools: Callable[[Any], Tools | None]) -> None:
        """`tools` gives those of the application that an entry point belongs to."""
        self._runtime = runtime
        self._tools = tools

    def wrapper(self, hook: str, generation: Callable[[Told], Generation], entered: Entered) -> Any:
        """`generation` judges a request by its headers; `entered(instance, exchange)` notes that it came this far."""
        fail = self._runtime.guard.fail(hook)
        handle = partial(self._handle, _Entry(generation, entered, fail))

        def http_wrapper(
            wrapped: Callable[..., Awaitable[Any]], instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
        ) -> Awaitable[Any]:
            handling = _CURRENT.get()
            if handling is None or kwargs or len(args) < 3 or args[-3] is not handling.scope:
                return handle(wrapped, instance, args, kwargs)
            try:  # most requests pass two or three entry points
                if handling.channels is not None:
                    entered(instance, handling.channels.exchange)
            except Exception as error:  # noqa: BLE001 - ours alone; as `Guard` would, without a wrapper for each request
                fail(error)
            return wrapped(*args)

        return http_wrapper

    async def _handle(
        self,
        entry: _Entry,
        wrapped: Callable[..., Awaitable[Any]],
        instance: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        try:
            handling = self._begin(entry, instance, args, kwargs)
        except Exception as error:  # noqa: BLE001 - ours alone; as `Guard` would, without a wrapper for each request
            entry.fail(error)
            handling = None
        if not isinstance(handling, Handling):
            return await wrapped(*args, **kwargs)
        token = _CURRENT.set(handling)
        cancelled = True
        try:
            args, kwargs = handling.arguments
            result = await wrapped(*args, **kwargs)
        except Exception:
            cancelled = False
            raise
        else:
            cancelled = False
            return result
        finally:
            put_back(_CURRENT, token)
            try:
                handling.end(cancelled=cancelled)
            except Exception as error:  # noqa: BLE001 - see above
                entry.fail(error)

    def _begin(self, entry: _Entry, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Handling | None:
        """What is to be called and ended here; None if that is done further out, or if it is no request."""
        asgi = _channels(args, kwargs)
        if asgi is None:
            return None
        (scope, receive, send), handling = asgi, _CURRENT.get()
        outer = None if handling is None else handling.channels
        if (
            handling is not None
            and outer is not None
            and (
                # Some pass a copy of the scope on, and the SDK a `send` of its own. Either channel alone tells, too.
                handling.scope is scope or receive is outer.receive or send is outer.send
            )
        ):
            entry.entered(instance, outer.exchange)
            return None
        told = _told(scope)
        tools = self._tools(args[0] if instance is None else instance)  # a function gets its application first
        exchange = self._runtime.server.exchange(_request(scope, told), entry.generation(told), tools)
        channels = Channels(self._runtime, exchange, receive, send, entry.fail)
        entry.entered(instance, exchange)
        return Handling(scope, channels, _replaced(args, kwargs, channels))


def observed_request(
    runtime: Runtime,
    fail: Callable[[Exception], None],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    generation: Generation,
) -> tuple[Channels, Arguments] | None:
    """What a call with `scope, receive, send` begins, and what to call with instead; None if it is none of HTTP."""
    asgi = _channels(args, kwargs)
    if asgi is None:
        return None
    scope, receive, send = asgi
    exchange = runtime.server.exchange(_request(scope, _told(scope)), generation)
    channels = Channels(runtime, exchange, receive, send, fail)
    return channels, _replaced(args, kwargs, channels)


def _told(scope: Scope) -> Told:
    told: Told = {}
    for name, value in scope["headers"]:
        if name in _WANTED and name not in told:
            told[name] = value.decode("latin-1")
    return told


def _request(scope: Scope, told: Told) -> Request:
    client, server = scope.get("client") or ("",), scope.get("server") or (None, None)
    where = f"{scope.get('root_path', '')} {scope.get('path', '')}"  # one process may serve many applications
    return Request(
        carrier=Carrier(scope["headers"]),
        method=scope["method"],
        session_id=told.get(b"mcp-session-id"),
        token=told.get(b"last-event-id") or None,  # the SDK takes an empty one for none, too
        protocol_version=told.get(b"mcp-protocol-version"),
        rpc_method=told.get(b"mcp-method"),
        peer=(*[told.get(name, "") for name in _MARKS], str(client[0]), where),
        server_address=server[0],
        server_port=server[1],
    )


def _channels(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Scope, Any, Any] | None:
    if "send" in kwargs:
        known = dict(zip(("scope", "receive"), args[-2:], strict=False)) | dict(kwargs)
        scope, receive, send = known.get("scope", kwargs), known.get("receive"), known["send"]
    elif len(args) >= 3:
        scope, receive, send = args[-3:]
    else:
        return None
    return None if receive is None or not _is_http(scope) else (scope, receive, send)


def _is_http(scope: Any) -> bool:
    return hasattr(scope, "get") and bool(scope.get("type") == "http")


def _replaced(args: tuple[Any, ...], kwargs: Mapping[str, Any], channels: Channels) -> Arguments:
    if "send" not in kwargs:
        return (*args[:-2], channels.receive, channels.send), kwargs
    if "receive" in kwargs:
        return args, {**kwargs, "receive": channels.receive, "send": channels.send}
    return (*args[:-1], channels.receive), {**kwargs, "send": channels.send}

"""What every hook is given: the watches, the way out, and the guard. Built once by `activate`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from otel_mcp_resume.rules.terms import Generation, Stream
    from otel_mcp_resume.sdk.guard import Guard
    from otel_mcp_resume.sdk.patches import Patches
    from otel_mcp_resume.watch.client import ClientWatch
    from otel_mcp_resume.watch.exchange import Leaving
    from otel_mcp_resume.watch.facts import Fact, Node
    from otel_mcp_resume.watch.server import ServerWatch

__all__ = ["Runtime"]


class HttpSpans(Protocol):
    """Tells the spans of HTTP instrumentations which exchange they are of. Raises what those spans raise."""

    def current(self) -> Any:
        """The context before a request is sent."""
        ...

    def has_client(self, leaving: Leaving) -> bool:
        """Whether the request leaves the process in a span of its own."""
        ...

    def mark_client(self, leaving: Leaving) -> None:
        """To be called where the request leaves the process."""
        ...

    def mark_server(
        self, generation: Generation, session_id: str | None, stream: Stream | None, token: str | None
    ) -> None:
        """To be called where the request is handled."""
        ...


@dataclass(frozen=True, slots=True)
class Runtime:
    """The parts of an activated plugin that hooks use."""

    patches: Patches
    guard: Guard
    report: Callable[[Iterable[Fact]], None]
    """Takes facts, in order. Cheap, thread-safe; what breaks inside it is counted, never raised."""
    carry: Callable[[Node, MutableMapping[str, str]], object]
    """Makes the span of an attempt current, and puts its context into the headers. What to give to `drop`, or None."""
    drop: Callable[[object], None]
    """Ends what `carry` began. To be called by the same coroutine."""
    http_spans: HttpSpans
    client: ClientWatch
    server: ServerWatch

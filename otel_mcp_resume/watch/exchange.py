"""What the client side is told of one HTTP exchange."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from otel_mcp_resume.records import record
from otel_mcp_resume.rules.terms import Generation, Stream
from otel_mcp_resume.watch.facts import Context

if TYPE_CHECKING:
    from otel_mcp_resume.watch.client_stream import ClientStream

__all__ = ["Leaving", "RequestHead", "ResponseHead", "context_of", "generation_of"]

FIRST_STATELESS = "2026-07-28"


def generation_of(protocol_version: str | None) -> Generation:
    """The generation of a request by its `MCP-Protocol-Version`; revisions are dates, so their order is that of text.

    Absent means 2025-03-26 (MCP 2025-06-18, "Protocol Version Header").
    """
    if protocol_version is not None and protocol_version >= FIRST_STATELESS:
        return Generation.STATELESS
    return Generation.STREAMABLE_HTTP


@record
class RequestHead:
    """A request as it goes out, after all headers were merged."""

    method: str
    session_id: str | None = None
    token: str | None = None
    protocol_version: str | None = None
    generation: Generation = field(init=False)
    """The generation that the request speaks."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "generation", generation_of(self.protocol_version))  # looked at three times or more


class Leaving(NamedTuple):
    """A request of an exchange that is on its way out of the process."""

    before: Any
    """The context before the HTTP client had it, as `report` gave it."""
    generation: Generation
    session_id: str | None
    stream: Stream | None
    token: str | None


@record
class ResponseHead:
    """The head of the response, after redirects that were followed."""

    status: int
    session_id: str | None = None
    """As named; all of them if several headers disagree, which is another session than any of them alone."""
    event_stream: bool = False


def context_of(stream: ClientStream, request: RequestHead | None, response: ResponseHead | None) -> Context:
    """What spans and records show of an exchange."""
    transport = stream.transport
    session_id = (response and response.session_id) or (request and request.session_id) or stream.session_id
    return Context(
        session_id=session_id if stream.generation is not Generation.STATELESS else None,
        protocol_version=request.protocol_version if request else None,
        method=stream.method,
        request_id=stream.request_id,
        status_code=response.status if response else None,
        server_address=transport.address,
        server_port=transport.port,
    )

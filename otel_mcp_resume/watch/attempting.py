"""Whether a request of a client is an attempt, and what its token is bound to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from otel_mcp_resume.rules.terms import Generation
from otel_mcp_resume.watch.attempt import Attempt, Binding
from otel_mcp_resume.watch.seen import short_key

if TYPE_CHECKING:
    from otel_mcp_resume.watch.client_stream import ClientStream
    from otel_mcp_resume.watch.exchange import RequestHead, ResponseHead

__all__ = ["attempt_of", "meet"]


def attempt_of(stream: ClientStream, request: RequestHead) -> Attempt | None:
    """The attempt that a request for `stream` is; None for a first opening, and for a client that is leaving.

    Any GET with a token is one. A token on a POST resumes nothing, but at a `stateless` server, which knows only POST.
    """
    first = not stream.opened and not stream.reopened
    shown_to_stateless = request.token is not None and stream.generation is Generation.STATELESS
    resumes = request.method == "GET" and request.token is not None
    if stream.transport.leaving or (first and not resumes and not shown_to_stateless):
        return None
    attempt = Attempt(
        _binding(stream, request),
        stream=stream.kind,
        generation=stream.generation,
        context=stream.transport.context(stream, request, None),
        opened_at=stream.watch.clock(),
        downtime=None,
        on_expiry=stream.watch.expired,
    )
    attempt.ids_before = stream.has_ids
    attempt.barren = stream.barren
    return attempt


def meet(
    attempt: Attempt, stream: ClientStream, request: RequestHead, response: ResponseHead | None, now: float
) -> None:
    """The answer to an attempt's request is here: from now on its time runs."""
    attempt.context = stream.transport.context(stream, request, response)
    attempt.opened_at = now
    attempt.downtime = None if stream.ended_at is None else max(0.0, now - stream.ended_at)
    if attempt.binding.generation is not stream.generation:  # then silence on the session is not enough
        named = None if response is None else response.session_id
        attempt.trusted = named is not None and named == attempt.binding.session_id


def _binding(stream: ClientStream, request: RequestHead) -> Binding:
    token = request.token
    if token is None or token in stream.seen or short_key(token) == stream.last_key:
        session_id = stream.session_id if stream.session_id is not None else request.session_id
        return Binding(token, session_id, stream.generation, stream.request_id)
    if received := stream.watch.received(stream.transport.origin, token, request.session_id):
        return Binding(token, received.session_id, received.generation, received.request_id)
    return Binding(token, request.session_id, stream.generation)

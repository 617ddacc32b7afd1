"""What the heads of `httpx` and `httpx2` requests and responses say about MCP."""

from __future__ import annotations

from typing import Any

from otel_mcp_resume.rules.terms import Generation
from otel_mcp_resume.watch.exchange import RequestHead, ResponseHead
from otel_mcp_resume.watch.transport import session_in_url

__all__ = ["credential", "opens_streams", "request_head", "response_head", "stated_credential"]


def opens_streams(request: Any, method: str, generation: Generation) -> bool:
    """Every MCP request accepts an event stream, but for the posts of HTTP+SSE.

    From 2.0 on the SDK runs the application's callbacks in the context of the exchange that brought the message: what
    they request, maybe over the same HTTP client, is theirs.
    """
    if method == "POST" and generation is Generation.SSE:
        return True
    return "text/event-stream" in request.headers.get("accept", "")


def request_head(request: Any, generation: Generation) -> RequestHead:
    headers = request.headers
    in_url = session_in_url(str(request.url)) if generation is Generation.SSE else None
    return RequestHead(
        method=str(request.method),
        session_id=in_url or _session(headers),
        token=headers.get("last-event-id") or None,
        protocol_version=headers.get("mcp-protocol-version"),
    )


def response_head(response: Any) -> ResponseHead:
    content_type = str(response.headers.get("content-type", ""))
    return ResponseHead(
        status=int(response.status_code),
        session_id=_session(response.headers),
        event_stream=content_type.lower().lstrip().startswith("text/event-stream"),
    )


def credential(told: Any) -> int | None:
    """What the request was authorised with, by its hash under the interpreter's random key. None if it is not known.

    `told` is the response, or the error: an `Auth` of the HTTP library adds the header when ours have been looked at.
    """
    try:
        headers = told.request.headers
    except (AttributeError, RuntimeError):  # the HTTP library raises the latter for what was made without a request
        return None
    return hash((headers.get("authorization"), headers.get("x-api-key")))


def stated_credential(http: Any, request: Any) -> int | None:
    """The same of a request that is about to leave; None if the HTTP client has yet to add what it authorises with."""
    stated, key = request.headers.get("authorization"), request.headers.get("x-api-key")
    is_open = stated is None and (getattr(http, "auth", None) is not None or bool(request.url.userinfo))
    return None if is_open else hash((stated, key))


def _session(headers: Any) -> str | None:
    """The session that is named, all of them if there are several: then it is another one than any of them alone.

    The SDK joins several headers in the same way, and sends that. No id has a space in it.
    """
    values = headers.get_list("mcp-session-id")
    if len(values) == 1 and " " not in values[0]:
        return values[0] or None
    named = [session_id for value in values for session_id in value.split(", ")]
    return ", ".join(dict.fromkeys(named)) or None

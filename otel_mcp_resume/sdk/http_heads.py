"""What the heads of `httpx` and `httpx2` requests and responses say about MCP."""

from __future__ import annotations

from typing import Any

from otel_mcp_resume.rules.terms import Generation
from otel_mcp_resume.watch.exchange import RequestHead, ResponseHead
from otel_mcp_resume.watch.transport import session_in_url

__all__ = ["credential", "named_credential", "request_head", "response_head", "stated_credential"]


_OF_REQUESTS = frozenset((b"accept", b"last-event-id", b"mcp-protocol-version", b"mcp-session-id"))
_OF_RESPONSES = frozenset((b"content-type", b"mcp-session-id"))


def request_head(request: Any, method: str, generation: Generation) -> RequestHead | None:
    """The head of an MCP request, None for any other. Each accepts an event stream, but for the posts of HTTP+SSE.

    From 2.0 on the SDK runs the application's callbacks in the context of the exchange that brought the message: what
    they request, maybe over the same HTTP client, is theirs.
    """
    told = _told(request.headers, _OF_REQUESTS)
    is_legacy = generation is Generation.SSE
    if not (is_legacy and method == "POST") and "text/event-stream" not in told.get(b"accept", ""):
        return None
    return RequestHead(
        method,
        (is_legacy and session_in_url(str(request.url))) or _session(told),
        told.get(b"last-event-id") or None,
        told.get(b"mcp-protocol-version"),
    )


def response_head(response: Any) -> ResponseHead:
    told = _told(response.headers, _OF_RESPONSES)
    is_event_stream = told.get(b"content-type", "").lower().lstrip().startswith("text/event-stream")
    return ResponseHead(int(response.status_code), _session(told), is_event_stream)


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


def named_credential(http: Any, request: Any) -> int | None:
    """The same, None also if the request names nothing: a hook of the application's may be about to add it."""
    is_named = "authorization" in request.headers or "x-api-key" in request.headers
    return stated_credential(http, request) if is_named and getattr(http, "auth", None) is None else None


def _told(headers: Any, wanted: frozenset[bytes]) -> dict[bytes, str]:
    """The wanted headers, decoded and joined as the HTTP library does, which walks over all of them for each name."""
    told: dict[bytes, str] = {}
    for name, value in headers.raw:
        lower = name.lower()
        if lower not in wanted:
            continue
        try:
            text = value.decode("ascii")
        except UnicodeDecodeError:
            text = value.decode(headers.encoding)
        told[lower] = f"{told[lower]}, {text}" if lower in told else text
    return told


def _session(told: dict[bytes, str]) -> str | None:
    """The session that is named, all of them if there are several: then it is another one than any of them alone.

    The SDK joins several headers in the same way, and sends that. No id has a space in it.
    """
    named = told.get(b"mcp-session-id")
    if not named or " " not in named:
        return named or None
    return ", ".join(dict.fromkeys(named.split(", "))) or None

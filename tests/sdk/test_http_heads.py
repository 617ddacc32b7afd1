from __future__ import annotations

from typing import Any

import pytest

from otel_mcp_resume.rules.terms import Generation
from otel_mcp_resume.sdk.http_heads import (
    credential,
    named_credential,
    request_head,
    response_head,
    stated_credential,
)
from tests.sdk.client_world import HTTP

AS_B = {"authorization": "b"}
STREAMS = {"accept": "text/event-stream"}


@pytest.mark.parametrize(
    ("headers", "session_id"),
    [
        ([("mcp-session-id", "S1")], "S1"),
        ([("Mcp-Session-Id", "S1"), ("MCP-SESSION-ID", "S1")], "S1"),
        ([("mcp-session-id", "S1"), ("mcp-session-id", "S2")], "S1, S2"),
        ([("mcp-session-id", "S1, S1")], "S1"),
        ([("mcp-session-id", "a,b")], "a,b"),
        ([("mcp-session-id", "")], None),
        ([], None),
    ],
)
def test_the_session_of_a_head(headers: list[tuple[str, str]], session_id: str | None) -> None:
    """Several that disagree are none of them alone."""
    assert response_head(HTTP.Response(200, headers=headers)).session_id == session_id
    request = HTTP.Request("GET", "http://h/mcp", headers=[("accept", "text/event-stream"), *headers])
    head = request_head(request, "GET", Generation.STREAMABLE_HTTP)
    assert head is not None
    assert head.session_id == session_id


@pytest.mark.parametrize("value", ["S1", "\u017ferm\u00f6n", "S\u00f61"])
def test_an_id_is_read_as_the_http_library_reads_it(value: str) -> None:
    """Which is how the SDK has it: the same letters whatever the other headers are written in."""
    for encoding in ("utf-8", "latin-1"):
        raw = [(b"X-Other", b"\xe9"), (b"Mcp-Session-Id", value.encode(encoding, "replace"))]
        response = HTTP.Response(200, headers=raw)
        assert response_head(response).session_id == response.headers["mcp-session-id"]


@pytest.mark.parametrize(
    ("content_type", "event_stream"),
    [
        ("text/event-stream", True),
        ("text/event-stream; charset=utf-8", True),
        ("Text/Event-Stream;charset=UTF-8", True),
        ("application/json", False),
        ("application/text/event-stream", False),
        ("", False),
    ],
)
def test_what_is_an_event_stream(content_type: str, *, event_stream: bool) -> None:
    head = response_head(HTTP.Response(200, headers={"content-type": content_type}))
    assert head.event_stream is event_stream


def test_a_request_as_it_goes_out() -> None:
    headers = {"last-event-id": "5", "mcp-session-id": "S1", "mcp-protocol-version": "2025-06-18"} | STREAMS
    head = request_head(HTTP.Request("GET", "http://h/mcp", headers=headers), "GET", Generation.STREAMABLE_HTTP)
    assert head is not None
    assert (head.method, head.token, head.session_id, head.protocol_version) == ("GET", "5", "S1", "2025-06-18")
    posted = HTTP.Request("POST", "http://h/messages?session_id=L1", headers={"last-event-id": ""})
    head = request_head(posted, "POST", Generation.SSE)
    assert head is not None
    assert (head.method, head.token, head.session_id) == ("POST", None, "L1")


@pytest.mark.parametrize(
    ("method", "accept", "generation", "ours"),
    [
        ("POST", "application/json, text/event-stream", Generation.STREAMABLE_HTTP, True),
        ("GET", "text/event-stream", Generation.STREAMABLE_HTTP, True),
        ("GET", "*/*", Generation.STREAMABLE_HTTP, False),
        ("POST", "application/json", Generation.STREAMABLE_HTTP, False),
        ("POST", "*/*", Generation.SSE, True),
        ("GET", "text/event-stream", Generation.SSE, True),
        ("GET", "*/*", Generation.SSE, False),
    ],
)
def test_what_can_be_an_mcp_request(method: str, accept: str, generation: Generation, *, ours: bool) -> None:
    request = HTTP.Request(method, "http://h/mcp", headers={"accept": accept})
    assert (request_head(request, method, generation) is not None) is ours


def test_the_credential_of_a_response_is_that_of_its_request() -> None:
    ann, bob, nobody = (HTTP.Request("GET", "http://h/", headers=named) for named in ({"Authorization": "a"}, AS_B, {}))
    known = [credential(HTTP.Response(200, request=request)) for request in (ann, bob, nobody)]
    assert len({*known, None}) == 4
    assert credential(HTTP.ReadError("cut", request=ann)) == known[0]


@pytest.mark.parametrize("told", [HTTP.Response(200), HTTP.ReadError("cut"), ValueError("none of the library's")])
def test_what_was_made_without_a_request_tells_nothing(told: Any) -> None:
    """Those who stand in for the HTTP library in tests leave it out."""
    assert credential(told) is None


@pytest.mark.parametrize(
    ("http", "url", "headers", "is_known"),
    [
        ({}, "http://h/", AS_B, True),
        ({}, "http://h/", {}, True),
        ({"auth": ("ann", "secret")}, "http://h/", AS_B, True),
        ({"auth": ("ann", "secret")}, "http://h/", {}, False),
        ({}, "http://ann:secret@h/", {}, False),
    ],
)
def test_what_a_request_states_of_its_credential(
    http: dict[str, Any], url: str, headers: dict[str, str], *, is_known: bool
) -> None:
    request = HTTP.Request("POST", url, headers=headers)
    known = credential(HTTP.Response(200, request=request)) if is_known else None
    assert stated_credential(HTTP.AsyncClient(**http), request) == known


@pytest.mark.parametrize(
    ("http", "headers", "is_named"),
    [({}, AS_B, True), ({}, {"x-api-key": "b"}, True), ({}, {}, False), ({"auth": ("ann", "secret")}, AS_B, False)],
)
def test_what_a_request_names_as_its_credential(
    http: dict[str, Any], headers: dict[str, str], *, is_named: bool
) -> None:
    request = HTTP.Request("POST", "http://h/", headers=headers)
    known = credential(HTTP.Response(200, request=request)) if is_named else None
    assert named_credential(HTTP.AsyncClient(**http), request) == known

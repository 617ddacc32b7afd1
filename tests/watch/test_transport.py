"""Sessions, calls, and the end of a client."""

from __future__ import annotations

from typing import Any

import pytest

from otel_mcp_resume.rules.terms import Disconnect, Generation, Stream
from otel_mcp_resume.watch.client import DEAD_SESSIONS
from otel_mcp_resume.watch.facts import AttemptSettled, SessionClosed, SessionOpened, Violated
from otel_mcp_resume.watch.transport import session_in_url
from tests.watch.client_play import LATER, URL, Line, Play, message

PAY: tuple[str, Any] = ("pay", {"order": 7})


@pytest.mark.parametrize(
    ("url", "session_id"),
    [
        ("/messages?session_id=L1", "L1"),
        ("https://host/messages/?sessionId=L1&x=2", "L1"),
        ("/messages?x=2&sessionid=L%201", "L 1"),
        ("/messages?session_id=L1&session_id=L2", "L1"),
        ("/messages?session=L1", None),
        ("/messages/L1", None),
        ("", None),
    ],
)
def test_the_session_in_an_endpoint(url: str, session_id: str | None) -> None:
    assert session_in_url(url) == session_id


@pytest.mark.parametrize(
    ("url", "origin", "address", "port"),
    [
        (URL, "https://mcp.example:8443", "mcp.example", 8443),
        ("http://MCP.Example/x", "http://mcp.example", "mcp.example", 80),
        ("https://mcp.example/x?y=z", "https://mcp.example", "mcp.example", 443),
        ("http://[::1]:8000/mcp", "http://[::1]:8000", "::1", 8000),
        ("/mcp", "://", None, None),
        ("http://host:port/mcp", "://", None, None),
        ("http://[::1/mcp", "://", None, None),
    ],
)
def test_an_endpoint(url: str, origin: str, address: str | None, port: int | None) -> None:
    transport = Play().transport(url)
    assert (transport.origin, transport.address, transport.port) == (origin, address, port)


# -- sessions --------------------------------------------------------------------------------------


def test_a_session_is_learned_from_a_successful_initialize_and_closed_once() -> None:
    play = Play()
    transport = play.transport()
    play.post(transport, "initialize", None, named="S1")
    play.post(transport, "initialize", None, named="S2")
    play.post(transport, "tools/list", "S1", named="S9")
    assert (len(play.of(SessionOpened)), transport.session_id) == (1, "S2")
    play.tell(transport.closed())
    play.tell(transport.closed())
    assert (len(play.of(SessionOpened)), len(play.of(SessionClosed))) == (1, 1)


@pytest.mark.parametrize("status", [302, 400, 404, 500])
def test_nothing_is_learned_from_any_other_response(status: int) -> None:
    play = Play()
    transport = play.transport()
    play.post(transport, "initialize", None, named="S1", status=status)
    play.post(transport, "initialize", None)
    assert (play.facts, transport.session_id) == ([], None)


def test_a_client_that_leaves_opens_no_session() -> None:
    play = Play()
    transport = play.transport()
    transport.leave()
    play.post(transport, "initialize", None, named="S1")
    play.tell(transport.closed())
    assert play.of(SessionOpened) == []


# -- a session that is gone ------------------------------------------------------------------------


def test_a_post_after_a_404_uses_a_session_that_is_gone() -> None:
    play = Play()
    transport = play.transport()
    play.post(transport, status=404)
    assert play.violations == []
    play.post(transport, "tools/list", status=404)
    play.post(transport, "notifications/roots/list_changed", status=404)
    assert play.violations == ["stale_session"] * 2
    (violated, _) = play.of(Violated)
    assert (violated.stream, violated.context.session_id) == (None, "S1")


def test_so_does_another_client_of_the_same_origin() -> None:
    play = Play()
    play.post(play.transport(), status=404)
    play.post(play.transport("https://mcp.example:8443/other"))
    play.post(play.transport("https://elsewhere.example/mcp"))
    assert play.violations == ["stale_session"]


def test_a_404_to_a_reopening_get_counts_one_to_a_first_get_does_not() -> None:
    play = Play()
    line = play.line().open(status=404, event_stream=False)
    play.post(line.transport)
    assert play.violations == []
    line = play.line().open().event(1, message("a")).end().open("1", status=404, event_stream=False)
    play.post(line.transport)
    assert play.violations == ["stale_session"]


@pytest.mark.parametrize("status", [400, 401, 405, 410, 500])
def test_another_refusal_proves_nothing(status: int) -> None:
    play = Play()
    transport = play.transport()
    play.post(transport, status=status)
    play.post(transport)
    assert play.violations == []


@pytest.mark.parametrize(
    ("method", "session"),
    [("tools/call", None), ("tools/call", "S2"), ("initialize", None), ("notifications/cancelled", "S1")],
)
def test_what_does_not_use_it(method: str, session: str | None) -> None:
    play = Play()
    transport = play.transport()
    play.post(transport, status=404)
    play.post(transport, method, session)
    assert play.violations == []


def test_a_session_that_answers_again_was_not_gone() -> None:
    play = Play()
    transport = play.transport()
    play.post(transport, status=404)
    play.post(transport, status=200)
    play.post(transport)
    assert play.violations == ["stale_session"], "the first could not be known to be well"


def test_an_unknown_method_of_a_stateless_server_ends_no_session() -> None:
    play = Play()
    transport = play.transport()
    for _ in range(2):
        play.post(transport, "x/y", None, status=404, protocol=LATER)
    assert (play.violations, transport.generation) == ([], Generation.STREAMABLE_HTTP)
    play.post(transport, "tools/list", None, protocol=LATER)
    assert transport.generation is Generation.STATELESS


def test_sessions_that_are_gone_are_bounded() -> None:
    play = Play()
    transport = play.transport()
    for number in range(DEAD_SESSIONS + 10):
        play.post(transport, session=f"S{number}", status=404)
    assert len(play.watch._dead) == DEAD_SESSIONS
    play.post(transport, session="S9")
    play.post(transport, session="S10")
    assert play.violations == ["stale_session"]


# -- calls -----------------------------------------------------------------------------------------


def test_a_call_that_was_left_and_is_sent_again() -> None:
    play = Play()
    play.transport().call_left(*PAY)
    other = play.transport()
    play.post(other, call=("pay", {"order": 8}))
    assert play.violations == []
    play.post(other, call=PAY)
    play.post(other, call=PAY)
    assert play.violations == ["duplicate_call"]
    (violated,) = play.of(Violated)
    assert violated.stream is Stream.REQUEST


def test_at_another_server_it_is_another_call() -> None:
    play = Play()
    play.transport().call_left(*PAY)
    play.post(play.transport("https://elsewhere.example/mcp"), call=PAY)
    assert play.violations == []


def test_a_tool_that_says_it_does_no_harm_may_be_called_again() -> None:
    play = Play()
    line = play.line(Stream.REQUEST, method="tools/list", request_id="1").open(method="POST")
    line.event(1, '{"id":1,"result":{"tools":[{"name":"pay","annotations":{"idempotentHint":true}}]}}').end()
    line.transport.call_left(*PAY)
    play.post(line.transport, call=PAY)
    assert play.violations == []


def test_after_the_window_it_is_meant() -> None:
    play = Play()
    transport = play.transport()
    transport.call_left(*PAY)
    play.now += 301
    play.post(transport, call=PAY)
    assert play.violations == []


# -- HTTP+SSE --------------------------------------------------------------------------------------


def legacy(play: Play) -> Line:
    return Line(play, play.transport("https://mcp.example/sse", Generation.SSE), Stream.SESSION)


def test_the_endpoint_event_names_the_session() -> None:
    play = Play()
    line = legacy(play).open(session=None, protocol=None)
    line.text("event: endpoint\ndata: /messages?session_id=L1\n\n").event(None, message("a"))
    assert [fact.generation for fact in play.of(SessionOpened)] == [Generation.SSE]
    assert (line.stream.session_id, line.transport.session_id) == ("L1", "L1")
    assert play.counted == {(Generation.SSE, Stream.SESSION): 1}
    line.end(Disconnect.CANCELLED)
    assert (play.verdicts, play.ends) == ([], ["cancelled"])


def test_a_session_stream_that_is_opened_again_is_another_session() -> None:
    play = Play()
    line = legacy(play).open(session=None, protocol=None)
    line.text("event: endpoint\ndata: /messages?session_id=L1\n\n").event(5, message("a")).end()
    line.open("5", session=None, protocol=None).text("event: endpoint\ndata: /messages?session_id=L2\n\n")
    assert play.verdicts == ["gap: session_changed"]
    (settled,) = play.of(AttemptSettled)
    assert (settled.generation, settled.stream) == (Generation.SSE, Stream.SESSION)


@pytest.mark.parametrize("endpoint", ["/messages", "", "/messages?session_id=", "::", "http://[::1"])
def test_an_endpoint_that_names_none(endpoint: str) -> None:
    play = Play()
    line = legacy(play).open(session=None, protocol=None)
    line.text(f"event: endpoint\ndata: {endpoint}\n\n")
    assert play.of(SessionOpened) == []

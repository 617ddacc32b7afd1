"""Cursors that are persisted: bound in one process, recalled in the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_mcp_resume
from otel_mcp_resume import Outcome, Reason, StreamCursor, bind, recall
from otel_mcp_resume.activate import current
from otel_mcp_resume.rules.terms import Disconnect, Generation, Stream
from otel_mcp_resume.watch.client import ClientWatch
from otel_mcp_resume.watch.exchange import RequestHead, ResponseHead
from otel_mcp_resume.watch.facts import AttemptSettled

URL = "http://127.0.0.1:8000/mcp"
EVENT = 'id: 4821\ndata: {"jsonrpc":"2.0","method":"n"}\n\n'

cursors = st.builds(
    StreamCursor,
    st.none() | st.text(),
    st.integers() | st.text(min_size=1),
    st.sampled_from(Stream),
    st.sampled_from(Generation),
    st.none() | st.text(),
)


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClientWatch]:
    monkeypatch.setenv("OTEL_EXPORTER_PROMETHEUS_PORT", "none")
    assert otel_mcp_resume.instrument()
    on = current()
    assert on is not None
    yield on.runtime.client
    otel_mcp_resume.uninstrument()


def receive(watch: ClientWatch, session: str) -> None:
    stream = watch.transport(URL).stream(Stream.STANDALONE)
    _, connection = stream.responded(RequestHead("GET", session), ResponseHead(200, session, event_stream=True), None)
    assert connection is not None
    connection.feed(EVENT)


def show(watch: ClientWatch, sent: str | None, named: str | None, first_id: int) -> AttemptSettled:
    stream = watch.transport(URL).stream(Stream.REQUEST, method="tools/call", request_id="9")
    request = RequestHead("GET", sent, "4821")
    _, attempt = stream.requesting(request)
    facts, connection = stream.responded(request, ResponseHead(200, named, event_stream=True), attempt)
    assert connection is not None
    facts = [*facts, *connection.feed(f'id: {first_id}\ndata: {{"jsonrpc":"2.0","method":"n"}}\n\n')]
    return next(fact for fact in facts if isinstance(fact, AttemptSettled))


@given(cursors)
def test_a_cursor_survives_as_one_string(cursor: StreamCursor) -> None:
    text = cursor.serialize()
    assert text.isascii()
    assert text.isprintable()
    assert StreamCursor.deserialize(text) == cursor


@given(st.text() | st.binary().map(lambda raw: f"c1.{raw!r}"))
def test_any_other_string_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a serialized StreamCursor"):
        StreamCursor.deserialize(text)


@pytest.mark.parametrize("parts", ["[]", '["S",true,"standalone","sse",null]', '["S",1,"other","sse",null]', "7"])
def test_a_string_of_the_right_format_and_the_wrong_content_is_refused(parts: str) -> None:
    import base64

    with pytest.raises(ValueError, match="not a serialized StreamCursor"):
        StreamCursor.deserialize("c1." + base64.urlsafe_b64encode(parts.encode()).decode())


def test_without_the_plugin_nothing_is_bound() -> None:
    assert bind("4821") is None
    assert not recall(StreamCursor("S1", 4821))


def test_a_token_of_a_running_stream_is_bound_to_its_session(plugin: ClientWatch) -> None:
    receive(plugin, "OLD")
    expected = StreamCursor("OLD", "4821", Stream.STANDALONE, Generation.STREAMABLE_HTTP, "http://127.0.0.1:8000")
    assert bind("4821") == expected
    assert bind("4822") is None
    assert bind("") is None


@pytest.mark.parametrize("endpoint", [URL, None])
def test_after_a_restart_a_recalled_token_is_judged_against_its_session(
    plugin: ClientWatch, endpoint: str | None
) -> None:
    cursor = StreamCursor("OLD", "4821", Stream.SESSION, Generation.SSE, endpoint)
    assert recall(StreamCursor.deserialize(cursor.serialize()))
    settled = show(plugin, sent="NEW", named="NEW", first_id=4822)
    assert (settled.outcome, settled.reason) == (Outcome.GAP, Reason.SESSION_CHANGED)
    assert settled.previous_generation is Generation.SSE
    assert settled.previous_session_id == "OLD"


def test_a_recalled_token_in_its_own_session_is_proven(plugin: ClientWatch) -> None:
    recall(StreamCursor("OLD", "4821", endpoint=URL))
    assert show(plugin, sent="OLD", named="OLD", first_id=4822).outcome is Outcome.PROVEN


def test_a_token_recalled_for_another_server_says_nothing_here(plugin: ClientWatch) -> None:
    recall(StreamCursor("OLD", "4821", endpoint="https://elsewhere.example/mcp"))
    assert show(plugin, sent="NEW", named="NEW", first_id=4822).outcome is Outcome.PROVEN


def test_a_token_that_is_not_bound_is_judged_by_what_the_request_carries(plugin: ClientWatch) -> None:
    assert show(plugin, sent="NEW", named="OTHER", first_id=4822).reason is Reason.SESSION_CHANGED


def test_silence_on_the_session_proves_nothing_for_a_token_of_another_generation(plugin: ClientWatch) -> None:
    recall(StreamCursor(None, "4821", Stream.SESSION, Generation.SSE, URL))
    stream = plugin.transport(URL).stream(Stream.REQUEST, method="tools/call", request_id="9")
    request = RequestHead("GET", None, "4821")
    _, attempt = stream.requesting(request)
    _, connection = stream.responded(request, ResponseHead(200, None, event_stream=True), attempt)
    assert connection is not None
    assert not any(isinstance(fact, AttemptSettled) for fact in connection.feed("id: 4822\ndata: {}\n\n"))
    settled = next(fact for fact in connection.ended(Disconnect.CLOSED) if isinstance(fact, AttemptSettled))
    assert (settled.outcome, settled.reason) == (Outcome.UNPROVEN, Reason.GENERATION_CHANGED)

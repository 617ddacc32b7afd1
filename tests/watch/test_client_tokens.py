"""Tokens that outlive their streams: an application keeps one and shows it again, over another client or transport."""

from __future__ import annotations

from typing import Any

import pytest

from otel_mcp_resume.rules.terms import Disconnect, Generation, Stream
from otel_mcp_resume.watch.facts import AttemptSettled
from tests.watch.client_play import Line, Play, message, response

HTTP, SSE = Generation.STREAMABLE_HTTP, Generation.SSE
CALL: dict[str, Any] = {"kind": Stream.REQUEST, "method": "tools/call"}
A = message("a")


def received(play: Play, session: str | None = "S1", request_id: str = "7", *, over: bool = True) -> Line:
    """A call of an earlier client received event 5 under a session, and was cut."""
    line = play.line(**CALL, request_id=request_id).open(method="POST", session=session, named=session)
    line.event(5, A).end()
    if over:
        line.over()
    return line


def over_sse(play: Play, session: str = "OLD") -> None:
    """An HTTP+SSE client received event 5 under a session, and left."""
    line = Line(play, play.transport("https://mcp.example:8443/sse", SSE), Stream.SESSION)
    line.open(session=None, protocol=None).text(f"event: endpoint\ndata: /messages?session_id={session}\n\n")
    line.event(5, A).end(Disconnect.CANCELLED).over()


# -- a token that another client object shows ------------------------------------------------------


@pytest.mark.parametrize("over", [True, False])
def test_a_token_is_bound_to_the_session_it_was_received_under(*, over: bool) -> None:
    play = Play()
    received(play, over=over)
    play.line(**CALL, request_id="1").open("5", named="S2")
    assert play.verdicts == ["gap: session_changed"]
    assert [fact.previous_session_id for fact in play.of(AttemptSettled)] == ["S1"]


@pytest.mark.parametrize("over", [True, False])
@pytest.mark.parametrize(
    ("answer", "verdict"), [(response(7), "proven: response_matched"), (response(1), "gap: foreign_response")]
)
def test_and_to_the_request_it_was_received_for(answer: str, verdict: str, *, over: bool) -> None:
    play = Play()
    received(play, over=over)
    play.line(**CALL, request_id="1").open("5").event(None, answer)
    assert play.verdicts == [verdict]


def test_of_an_unknown_token_the_request_is_unknown() -> None:
    play = Play()
    play.line(**CALL, request_id="1").open("5").event(None, response(7)).end()
    assert (play.verdicts, play.violations) == (["unproven: no_event_ids"], [])


def test_an_unknown_token_is_bound_to_the_session_sent_along() -> None:
    play = Play()
    play.line(**CALL, request_id="1").open("5", session="S1", named="S2")
    play.line(**CALL, request_id="1").open("5", session="S1", named="S1").event(6, A)
    play.line(**CALL, request_id="1").open("5", session=None, named="S2").event(6, A)
    assert play.verdicts == ["gap: session_changed", "proven: replayed_event", "proven: replayed_event"]


def test_small_tokens_of_two_sessions_are_told_apart() -> None:
    play = Play()
    received(play, "S1", "7")
    received(play, "S2", "8")
    play.line(**CALL, request_id="1").open("5", session="S1").event(None, response(7))
    play.line(**CALL, request_id="1").open("5", session="S2").event(None, response(8))
    assert play.verdicts == ["proven: response_matched"] * 2


def test_shown_under_a_session_that_began_here_it_is_another_sessions_token() -> None:
    play = Play()
    received(play, "S1")
    play.post(play.transport(), "initialize", None, named="S2")
    play.line(**CALL, request_id="1").open("5", session="S2", named="S2")
    assert play.verdicts == ["gap: session_changed"]


def test_shown_under_a_session_of_an_earlier_process_it_may_be_its_own() -> None:
    play = Play()
    received(play, "S1")
    play.line(**CALL, request_id="1").open("5", session="S0", named="S0").event(6, A)
    assert play.verdicts == ["proven: replayed_event"]


def test_at_another_origin_a_token_is_unknown() -> None:
    play = Play()
    received(play)
    line = Line(play, play.transport("https://elsewhere.example/mcp"), Stream.REQUEST, request_id="1")
    line.open("5", named="S1").event(None, response(1)).end()
    assert (play.verdicts, play.violations) == (["unproven: no_event_ids"], [])


# -- a token that crosses generations --------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "event", "verdict"),
    [
        ("OLD", (6, A), "proven: replayed_event"),
        ("OLD", (6, None), "proven: priming_event"),
        ("OLD", ("x", A), "unproven: generation_changed"),
        (None, (6, A), "unproven: generation_changed"),
        (None, ("x", A), "unproven: generation_changed"),
        (None, (4, A), "gap: event_id_regression"),
        ("OLD", (4, A), "gap: event_id_regression"),
        ("FRESH", (6, A), "gap: session_changed"),
    ],
)
def test_a_token_of_another_generation(named: str | None, event: tuple[Any, str | None], verdict: str) -> None:
    play = Play()
    over_sse(play)
    play.line(**CALL, request_id="1").open("5", session="OLD", named=named).event(*event).end()
    assert play.verdicts == [verdict]
    (settled,) = play.of(AttemptSettled)
    assert (settled.generation, settled.previous_generation) == (HTTP, SSE)


def test_silence_after_a_change_of_generation_says_so_until_it_is_a_loop() -> None:
    play = Play()
    over_sse(play)
    line = play.line(**CALL, request_id="1")
    for _ in range(3):
        line.open("5", session="OLD").end()
    assert play.verdicts == [*["unproven: generation_changed"] * 2, "unproven: reconnect_loop"]

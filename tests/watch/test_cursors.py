from __future__ import annotations

import pytest

from otel_mcp_resume.rules.terms import Generation, Stream
from otel_mcp_resume.watch.cursors import CursorMemory, Received
from otel_mcp_resume.watch.seen import short_key

HERE, THERE = "https://here", "https://there"


def received(session_id: str | None, request_id: str | None = None) -> Received:
    return Received(session_id, Generation.STREAMABLE_HTTP, Stream.STANDALONE, request_id)


def memory_with(*bindings: Received, limit: int = 10) -> CursorMemory:
    memory = CursorMemory(limit)
    for binding in bindings:
        memory.keep(HERE, "5", binding)
    return memory


def test_a_token_is_found_under_its_session() -> None:
    memory = memory_with(received("S1"), received("S2"))
    assert memory.find(HERE, "5", "S1") == received("S1")
    assert memory.find(HERE, "5", "S2") == received("S2")


def test_a_token_is_known_at_its_origin_only() -> None:
    assert memory_with(received("S1")).find(THERE, "5", "S1") is None
    assert memory_with(received("S1")).find(HERE, "6", "S1") is None


def test_shown_without_a_session_it_is_that_of_the_only_one() -> None:
    assert memory_with(received("S1")).find(HERE, "5", None) == received("S1")
    assert memory_with(received("S1"), received("S2")).find(HERE, "5", None) is None
    assert memory_with(received(None)).find(HERE, "5", None) == received(None)


def test_under_a_session_of_an_earlier_process_it_may_be_one_of_that_sessions_own() -> None:
    assert memory_with(received("S1")).find(HERE, "5", "S2") is None


def test_under_a_session_that_began_here_it_is_another_sessions_token() -> None:
    memory = memory_with(received("S1"))
    memory.initialised(HERE, "S2")
    assert memory.find(HERE, "5", "S2") == received("S1")
    assert memory.find(HERE, "6", "S2") is None
    memory.initialised(THERE, "S3")
    assert memory.find(HERE, "5", "S3") is None


def test_the_latest_of_several_requests_of_a_session_is_meant() -> None:
    memory = memory_with(received("S1", "1"), received("S1", "2"))
    assert memory.find(HERE, "5", "S1") == received("S1", "2")
    memory.keep(HERE, "5", received("S1", "1"))
    assert memory.find(HERE, "5", "S1") == received("S1", "1")


def test_of_one_token_only_so_many_bindings_are_kept() -> None:
    memory = memory_with(*(received(f"S{number}") for number in range(20)))
    assert memory.find(HERE, "5", "S11") is None
    assert memory.find(HERE, "5", "S12") == received("S12")
    assert memory.evicted == 0


def test_the_oldest_token_goes_and_is_counted() -> None:
    memory = CursorMemory(2)
    for token in ("1", "2", "1", "3"):
        memory.keep(HERE, token, received("S1"))
    assert [memory.find(HERE, token, "S1") is not None for token in "123"] == [True, False, True]
    assert memory.evicted == 1


def test_sessions_are_bounded_too() -> None:
    memory = CursorMemory(3)
    for number in range(100):
        memory.initialised(HERE, f"S{number}")
    assert len(memory._initialised) == 3


@pytest.mark.parametrize("token", ["x" * 65_536, "é" * 129, "\0", "\u2028", ""])
def test_tokens_of_any_shape(token: str) -> None:
    memory = CursorMemory(5)
    memory.keep(HERE, short_key(token), received("S1"))
    assert memory.find(HERE, token, "S1") == received("S1")
    assert memory.find(HERE, token + "x", "S1") is None

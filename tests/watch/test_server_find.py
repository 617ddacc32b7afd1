"""Where a token is looked for in the account of a session."""

from __future__ import annotations

from typing import Any

from tests.watch.server_world import GET_STREAM, World


class Counting(dict[str, int]):
    """The events of a stream, and how often they were asked for."""

    asked = 0

    def get(self, *args: Any) -> Any:
        type(self).asked += 1
        return super().get(*args)


def test_a_token_of_the_latest_stream_is_found_however_many_streams_the_session_has() -> None:
    """A session that has made thousands of calls must not pay for all of them with each resumption."""
    world = World()
    session = world.session()
    for number in range(100):
        world.emit(session, str(number), event_id=f"e{number}")
    for stream in session.streams.values():
        stream.events = Counting(stream.events)
    cursor = session.find("e99")
    assert cursor is not None
    assert cursor.stream.name == "99"
    assert Counting.asked == 1
    assert session.find("e0") is not None
    assert session.find("unknown") is None


def test_an_id_that_two_streams_have_is_the_later_ones() -> None:
    """A store that numbers each stream alone: what is resumed is nearly always the latest."""
    world = World()
    session = world.session()
    for name in ("1", GET_STREAM, "2"):
        world.emit(session, name, event_id="e1")
    cursor = session.find("e1")
    assert cursor is not None
    assert cursor.stream.name == "2"

"""Tokens as servers read them: the bytes of a header are Latin-1 to the SDK, and UTF-8 to some stores."""

from __future__ import annotations

import pytest

from otel_mcp_resume.rules.terms import Outcome, Reason
from otel_mcp_resume.watch.seen import shortened
from tests.watch.server_world import World, seen_and_cut

COMPLETE = (Outcome.PROVEN, Reason.REPLAY_COMPLETE)


@pytest.mark.parametrize("event_id", ["ä1", "é" * 200, "日本-7", "x" * 5000])
@pytest.mark.parametrize("as_latin", [True, False])
def test_an_id_is_known_however_its_header_was_read(event_id: str, *, as_latin: bool) -> None:
    world = World()
    session, _ = seen_and_cut(world)
    live = world.get(session)
    world.emit(session, event_id=shortened(event_id))
    live.write().drop(session)
    missed = world.emit(session)
    world.facts.clear()
    token = event_id.encode().decode("latin-1") if as_latin else event_id
    world.replayed(session, token, [missed])
    assert world.verdicts == [COMPLETE]


@pytest.mark.parametrize("token", ["ÿ\x80", "\udcff", "nobody's"])
def test_what_is_no_text_in_either_is_known_to_nobody(token: str) -> None:
    world = World()
    session, _ = seen_and_cut(world)
    world.replayed(session, token, [])
    assert world.verdicts == [(Outcome.GAP, Reason.UNKNOWN_TOKEN_ACCEPTED)]

"""Sessions of a real server, opened and closed over sockets: nothing of ours stays behind, in memory or in the SDK."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from typing import Any

import pytest

from otel_mcp_resume.watch.ledger import StreamLedger
from otel_mcp_resume.watch.server import Exchange, Session
from otel_mcp_resume.watch.server_attempt import ServerAttempt
from tests.sdk.server_apps import manager_app
from tests.sdk.server_side import PROTOCOL, Observed, observed, playing
from tests.wire.driven.event_store import make_store
from tests.wire.driven.steps import Json

pytestmark = [
    pytest.mark.full,
    pytest.mark.filterwarnings("ignore:.* is deprecated as of 2026-07-28"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SESSIONS = 400
KINDS = (Session, Exchange, StreamLedger, ServerAttempt)


def alive() -> Counter[str]:
    """How many objects of ours there are."""
    for _ in range(3):
        gc.collect()
    return Counter(type(thing).__name__ for thing in gc.get_objects() if isinstance(thing, KINDS))


def one_session(name: str) -> list[Json]:
    on: Json = {"session": name}
    return [
        {"initialize": {**on, "protocol": PROTOCOL}},
        {"get": {**on, "as": "stream", "no_wait": True}},
        {"call": {**on, "as": "call", "play": [{"emit": 1}, {"announce": 1}]}},
        {"read": {"from": "call", "events": 2, "save": "token"}},
        {"read": {"from": "call", "until": "end"}},
        {"drop": {"request": "stream", "then": 0}},
        {"get": {**on, "as": "resumed", "token": "$token"}},
        {"delete": on},
        {"drop": {"request": "resumed", "then": 0}},
    ]


@pytest.mark.full
def test_nothing_stays_behind() -> None:
    counts: list[Counter[str]] = []

    async def play(seen: Observed) -> None:
        store: Any = make_store({"ids": "uuid"})()
        async with playing(manager_app(event_store=store)) as client:
            for number in range(SESSIONS):
                await client.play(one_session(f"s{number}"))
                store.rows.rows.clear()
                client.exchanges.clear()
                client.sessions.clear()
                if number + 1 in (SESSIONS // 4, SESSIONS):
                    await seen.until(lambda: seen.open == (0, 0, 0))
                    assert seen.watch.remembered == (0, 0)
                    seen.facts.clear()
                    counts.append(alive())

    with observed() as seen:
        asyncio.run(play(seen))
    assert counts[1].total() <= counts[0].total() + 5, counts

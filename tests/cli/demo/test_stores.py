from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

import pytest

from otel_mcp_resume.cli.demo import missing

if missing():
    pytest.skip("the demo needs a newer mcp", allow_module_level=True)

from otel_mcp_resume.cli.demo.stores import EventLog, ExpiringLog, SessionLog, SlowLog, TrustingLog


async def replay(store: EventLog, token: str) -> tuple[str | None, list[tuple[Any, str | None]]]:
    """The stream that the store names, and what it replays."""
    sent: list[tuple[Any, str | None]] = []

    async def send(event: Any) -> None:
        sent.append((event.message, event.event_id))

    return await store.replay_events_after(token, send), sent


async def filled(kind: type[EventLog], first: int = 1) -> EventLog:
    """A priming event, a message of another stream, and two messages."""
    store = kind(itertools.count(first))
    for stream, message in [("7", None), ("8", "other"), ("7", "a"), ("7", "b")]:
        await store.store_event(stream, message)
    return store


def test_a_replay_brings_what_followed_on_the_stream_of_the_token() -> None:
    async def run() -> None:
        store = await filled(EventLog, 100)
        assert await replay(store, "100") == ("7", [("a", "102"), ("b", "103")])
        assert await replay(store, "103") == ("7", [])
        assert await replay(store, "99") == (None, [])

    asyncio.run(run())


def test_an_expired_token_is_an_unknown_one() -> None:
    async def run() -> None:
        store = await filled(ExpiringLog)
        assert await replay(store, "3") == ("7", [("b", "4")])
        await asyncio.sleep(ExpiringLog.time_to_live * 1.5)
        assert await replay(store, "3") == (None, [])

    asyncio.run(run())


def test_what_is_stored_while_a_slow_replay_ends_is_not_replayed() -> None:
    async def run() -> None:
        store, started = await filled(SlowLog), time.monotonic()
        replaying = asyncio.ensure_future(replay(store, "3"))
        await asyncio.sleep(0)
        await store.store_event("7", "late")
        assert await replaying == ("7", [("b", "4")])
        assert time.monotonic() - started >= SlowLog.last_page * 0.9

    asyncio.run(run())


def test_a_token_of_another_instance_is_taken_for_one_of_the_standalone_stream() -> None:
    async def run() -> None:
        store = await filled(SessionLog)
        assert await replay(store, "4821") == ("_GET_stream", [])
        assert await replay(store, "3") == ("7", [("b", "4")])

    asyncio.run(run())


def test_a_trusting_log_takes_any_token_for_one_of_the_standalone_stream() -> None:
    async def run() -> None:
        store = await filled(TrustingLog)
        assert await replay(store, "4821") == ("_GET_stream", [])
        assert await replay(store, "1") == ("7", [("a", "3"), ("b", "4")])

    asyncio.run(run())

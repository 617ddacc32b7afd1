"""What the SDK's server loses between a replay and the live stream, over many random runs with a slow store.

What was really written is recorded outside of everything, next to the socket. The ledger must count exactly the rest.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import random
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from otel_mcp_resume.rules.terms import Outcome, Reason, Stream
from otel_mcp_resume.watch.facts import AttemptSettled, StreamClosed
from tests.sdk.server_apps import manager_app
from tests.sdk.server_side import PROTOCOL, Observed, observed, playing
from tests.wire.driven.steps import Json

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* is deprecated as of 2026-07-28"),
    pytest.mark.filterwarnings("ignore:Field .lifespan. has an incomplete definition"),  # older mcp, of its settings
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # older mcp leaves streams unclosed
]

RUNS = 60
GET_STREAM = "_GET_stream"
ID = re.compile(rb"^id: (\S+)\r?$", re.MULTILINE)


@dataclass
class Recorder:
    """An ASGI middleware: every event id that left, in order, and on which kind of request."""

    app: Any
    written: set[str] = field(default_factory=set)
    last: str | None = None

    def last_of_get(self) -> str | None:
        """The latest id that was written on a stream that a GET opened."""
        return self.last

    async def __call__(self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        async def recording(message: Any) -> None:
            await send(message)
            for event_id in ID.findall(message.get("body", b"")):
                self.written.add(event_id.decode())
                if scope["method"] == "GET":
                    self.last = event_id.decode()

        await self.app(scope, receive, recording if scope["type"] == "http" else send)


def slow_store(chance: random.Random) -> Any:
    """A store that takes its time before and after it has taken an event, and after it has replayed the last one."""
    module = importlib.import_module("mcp.server.streamable_http")

    class SlowStore(module.EventStore):  # type: ignore[misc,name-defined] # the SDK under test decides what it is
        def __init__(self) -> None:
            self.rows: list[tuple[str, str, Any]] = []
            self.numbers = itertools.count(1)

        async def store_event(self, stream_id: str, message: Any) -> str:
            await asyncio.sleep(chance.random() * 0.004)
            event_id = str(next(self.numbers))
            self.rows.append((event_id, stream_id, message))
            await asyncio.sleep(chance.random() * 0.004)
            return event_id

        async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
            await asyncio.sleep(chance.random() * 0.01)
            place = next((at for at, row in enumerate(self.rows) if row[0] == last_event_id), None)
            if place is None:
                return None
            stream = self.rows[place][1]
            for event_id, owner, message in self.rows[place + 1 :]:
                if owner == stream and message is not None:
                    await send_callback(module.EventMessage(message, event_id))
            await asyncio.sleep(chance.random() * 0.03)
            return stream

    return SlowStore()


def standalone_closed(seen: Observed, times: int) -> bool:
    return sum(fact.stream is Stream.STANDALONE for fact in seen.of(StreamClosed)) >= times


async def one_run(seen: Observed, client: Any, recorder: Recorder, chance: random.Random, name: str) -> None:
    """A session whose standalone stream is cut again and again while notifications are announced."""
    on: Json = {"session": name}
    await client.play([{"initialize": {**on, "protocol": PROTOCOL}}])
    recorder.last = None
    again: Json = {}
    await client.play([{"get": {**on, "as": f"{name} 0", "no_wait": True}}, {"sleep": 0.02}])
    for cycle in range(1, chance.randint(3, 5)):
        script = [{"announce": chance.randint(1, 8), "every": chance.random() * 0.01}]
        await client.play([{"call": {**on, "as": f"{name} call {cycle}", "play": script, "no_wait": True}}])
        await asyncio.sleep(chance.random() * 0.05)
        await client.play([{"drop": {"request": f"{name} {cycle - 1}", "then": 0}}])
        await seen.until(partial(standalone_closed, seen, cycle))
        token = recorder.last_of_get()
        client.saved[name] = token
        again = {**on, "as": f"{name} {cycle}", "no_wait": True}
        await client.play([{"get": {**again, "token": f"${name}"} if token else again}])
        await asyncio.sleep(chance.random() * 0.06)
        if chance.random() < 0.5:
            await client.play([{"call": {**on, "as": f"{name} more {cycle}", "play": [{"announce": 1}]}}])
    for key, exchange in client.exchanges.items():
        if key.startswith((f"{name} call", f"{name} more")):
            assert await exchange.wait_until(lambda: False, 10) or exchange.ended
    await asyncio.sleep(0.05)
    await client.play([{"delete": on}, {"drop": {"request": again["as"], "then": 0}}])
    await seen.until(lambda: seen.open == (0, 0, 0))


@pytest.mark.full
def test_the_count_is_exactly_what_was_not_written() -> None:
    chance = random.Random(4821)
    store = slow_store(chance)
    losses: list[int] = []
    gaps = 0

    async def play(seen: Observed) -> None:
        nonlocal gaps
        recorder = Recorder(manager_app(event_store=store))
        async with playing(recorder) as client:
            for number in range(RUNS):
                seen.facts.clear()
                store.rows.clear()
                await one_run(seen, client, recorder, chance, f"run{number}")
                lost = [row[0] for row in store.rows if row[2] is not None and row[0] not in recorder.written]
                assert sum(seen.undelivered.values()) == len(lost), (number, lost, seen.facts)
                assert seen.violations == []
                losses.append(len(lost))
                attempts = seen.of(AttemptSettled)
                assert {(fact.outcome, fact.reason) for fact in attempts} <= {
                    (Outcome.PROVEN, Reason.REPLAY_COMPLETE),
                    (Outcome.PROVEN, Reason.NOTHING_OWED),
                    (Outcome.GAP, Reason.UNDELIVERED),
                }
                gaps += sum(fact.outcome is Outcome.GAP for fact in attempts)
        assert seen.watch.remembered == (0, 0)

    with observed() as seen:
        asyncio.run(play(seen))
    print(f"{RUNS} runs, {sum(loss > 0 for loss in losses)} with losses, {sum(losses)} messages lost, {gaps} gaps")
    assert sum(losses) > RUNS / 10  # otherwise nothing was put to the test
    assert gaps

"""What an application and its peer see of a server, of every generation, over real sockets."""

from __future__ import annotations

import re
from typing import Any

from tests.sdk.server_apps import high_level_app, sse_app
from tests.sdk.server_side import PROTOCOL, playing
from tests.wire.driven.event_store import make_store
from tests.wire.driven.steps import Json, sdk_is_modern
from tests.wire.scripted_client import ScriptedClient

__all__ = ["play"]

A: Json = {"session": "A"}
STREAMABLE: list[Json] = [
    {"initialize": {**A, "protocol": PROTOCOL}},
    {"get": {**A, "as": "before"}},
    {"call": {**A, "as": "one", "play": [{"announce": 2}, {"emit": 2}, {"ask": "own"}]}},
    {"read": {"from": "one", "events": 3 + (PROTOCOL >= "2025-11-25")}},
    {"answer": {**A, "from": "one"}},
    {"read": {"from": "one", "until": "end"}},
    {"read": {"from": "before", "events": 2, "save": "token"}},
    {"drop": {"request": "before", "then": 0.1}},
    {"call": {**A, "as": "two", "play": [{"announce": 3}]}},
    {"read": {"from": "two", "until": "end"}},
    {"get": {**A, "as": "resumed", "token": "$token"}},
    {"read": {"from": "resumed", "events": 3 + (PROTOCOL >= "2025-11-25")}},
    {"get": {**A, "as": "unknown", "token": "no-such-id"}},
    {"get": {**A, "as": "conflict"}},
    {"request": {**A, "as": "nonsense", "rpc": {"method": "no/such"}}},
    {"read": {"from": "nonsense", "until": "end"}},
    {"delete": {**A, "as": "farewell"}},
    {"get": {**A, "as": "late"}},
]
LEGACY: list[Json] = [
    {"connect_sse": {"session": "L", "as": "stream"}},
    {"initialize": {"session": "L", "protocol": PROTOCOL}},
    {"read": {"from": "stream", "events": 1}},
    {"call": {"session": "L", "play": [{"emit": 2}, {"ask": "own"}]}},
    {"read": {"from": "stream", "events": 3}},
    {"answer": {"session": "L", "from": "stream"}},
    {"read": {"from": "stream", "events": 1}},
]
M: Json = {"session": "M"}
LISTEN: Json = {"method": "subscriptions/listen", "params": {"notifications": {"toolsListChanged": True}}}
MODERN: list[Json] = [
    {"session": {**M, "protocol": "2026-07-28"}},
    {"request": {**M, "as": "listen", "rpc": LISTEN}},
    {"read": {"from": "listen", "events": 1}},
    {"call": {**M, "as": "modern", "token": "5", "play": [{"progress": 2}]}},
    {"read": {"from": "modern", "until": "end"}},
]
CHANGING = re.compile(r"[0-9a-f]{32}|\d\d:\d\d:\d\d|[0-9a-f-]{36}|127.0.0.1:\d+")


PATIENCE = 10
"""Factor on the time limits of a peer: on a loaded machine, late is not never."""


async def ended(client: ScriptedClient) -> None:
    """Waits for the bodies that a status came with."""
    for exchange in client.exchanges.values():
        if "event-stream" not in exchange.headers.get("content-type", ""):
            assert await exchange.wait_until(lambda exchange=exchange: exchange.ended, 3 * PATIENCE)  # type: ignore[misc]


def seen(exchanges: dict[str, Any]) -> list[Any]:
    """Status, headers and events of every exchange, in the order of their beginning."""
    return [
        (
            name,
            exchange.status,
            [(key, CHANGING.sub("*", value)) for key, value in exchange.headers.items() if key != "date"],
            [(event.id, event.event, CHANGING.sub("*", event.data or "")) for event in exchange.events],
        )
        for name, exchange in exchanges.items()
    ]


async def play() -> list[Any]:
    """The three plays, one after the other, each with an application of its own."""
    store = make_store({"ids": "global-int"})
    plays = [(high_level_app(event_store=store()), STREAMABLE), (sse_app(), LEGACY)]
    if sdk_is_modern():
        plays.append((high_level_app(), MODERN))
    result: list[Any] = []
    for app, steps in plays:
        async with playing(app) as client:
            client.patience = PATIENCE
            await client.play(steps)
            await ended(client)
            result.append(seen(client.exchanges))
    return result

"""What a full backlog drops: counted, and as many as the client really lacks."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import json
import socket
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from otel_mcp_resume.rules.terms import Disconnect, Generation, Stream, UndeliveredCause
from otel_mcp_resume.sdk.server_listen import LISTEN
from otel_mcp_resume.watch.facts import EventsUndelivered, StreamClosed
from tests.sdk.client_world import IS_MODERN
from tests.sdk.listening import Publisher, client_of, updated
from tests.sdk.server_side import Observed, observed, playing, running
from tests.wire.driven.steps import Json

pytestmark = pytest.mark.skipif(not IS_MODERN, reason="1.x has no such subscriptions")

URIS = [f"test://{number}" for number in range(20)]
EVENTS = [updated(uri) for uri in URIS] if IS_MODERN else []
NO_STREAM = UndeliveredCause.NO_STREAM
LIMIT = 30.0


async def follow(client: Any, uris: Sequence[str], seen: list[str], ready: asyncio.Event) -> str:
    """Follows a subscription to its end, and how it ended."""
    async with client.listen(resource_subscriptions=uris) as subscription:
        ready.set()
        try:
            async for event in subscription:
                seen.append(event.uri)  # noqa: PERF401 - what came before an error counts
        except Exception as error:  # noqa: BLE001 - the SDK's own
            return type(error).__name__
    return "graceful"


def open_listens(seen: Observed) -> int:
    return seen.open[1]


def test_what_a_burst_drops_is_what_the_client_lacks() -> None:
    async def main() -> None:
        publisher, got, ready = Publisher(backlog=5), list[str](), asyncio.Event()
        async with running(publisher.app) as port, client_of(f"http://127.0.0.1:{port}/mcp") as client:
            following = asyncio.create_task(follow(client, URIS, got, ready))
            await asyncio.wait_for(ready.wait(), LIMIT)
            assert open_listens(seen) == 1
            publisher.bus.burst([*EVENTS, updated("test://nobody-listens-to-this")])
            assert await asyncio.wait_for(following, LIMIT) == "graceful", "the SDK does not tell its client"
            await seen.until(lambda: open_listens(seen) == 0)
        assert 0 < len(got) < len(URIS)
        assert seen.undelivered == {NO_STREAM: len(URIS) - len(got)}
        assert {(fact.generation, fact.stream) for fact in seen.of(EventsUndelivered)} == {
            (Generation.STATELESS, Stream.LISTEN)
        }
        assert [fact.cause for fact in seen.of(StreamClosed) if fact.stream is Stream.LISTEN] == [Disconnect.COMPLETED]

    with observed() as seen:
        anyio.run(main)
        assert seen.hooks[LISTEN] is True


def test_only_the_subscriber_whose_backlog_is_full_lacks_anything() -> None:
    async def main() -> None:
        publisher, few, many, ready = Publisher(backlog=5), list[str](), list[str](), [asyncio.Event(), asyncio.Event()]
        async with running(publisher.app) as port, client_of(f"http://127.0.0.1:{port}/mcp") as client:
            some = asyncio.create_task(follow(client, URIS[:3], few, ready[0]))
            every = asyncio.create_task(follow(client, URIS, many, ready[1]))
            for each in ready:
                await asyncio.wait_for(each.wait(), LIMIT)
            publisher.bus.burst(EVENTS)
            assert await asyncio.wait_for(every, LIMIT) == "graceful"
            await publisher.bus.publish(EVENTS[0])
            await seen.until(lambda: len(few) == 4)
            publisher.handler.close()
            assert await asyncio.wait_for(some, LIMIT) == "graceful"
        assert few == [*URIS[:3], URIS[0]]
        assert seen.undelivered == {NO_STREAM: len(URIS) - len(many)}

    with observed() as seen:
        anyio.run(main)


def test_a_client_that_stopped_reading_lacks_what_was_not_written() -> None:
    long = [f"test://{number}/{'x' * 60_000}" for number in range(10)]

    async def main() -> None:
        publisher = Publisher(backlog=10)
        async with running(publisher.app) as port:
            with contextlib.closing(await asyncio.to_thread(_deaf_peer, port, long)):
                await seen.until(lambda: len(publisher.bus.listeners) == 1)
                published = 0
                while not seen.undelivered and published < 500:  # far more than the buffers in between can take
                    await publisher.bus.publish(updated(long[published % len(long)]))
                    published += 1
                for uri in long[:3]:
                    await publisher.bus.publish(updated(uri))
                assert seen.undelivered == {NO_STREAM: 4}
            await seen.until(lambda: open_listens(seen) == 0)
            written = seen.events[Generation.STATELESS, Stream.LISTEN] - 1  # without the acknowledgment
            lacking = published + 3 - written
            # What was left in the backlog goes too. One was taken from it, and two may be in the hands of the
            # transport: nobody can tell of those.
            assert 4 < seen.undelivered[NO_STREAM] <= lacking <= seen.undelivered[NO_STREAM] + 3

    with observed() as seen:
        anyio.run(main)


def _deaf_peer(port: int, uris: Sequence[str]) -> socket.socket:
    """Subscribes, and reads nothing of what comes."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "deaf", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"_meta": meta, "notifications": {"resourceSubscriptions": list(uris)}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\n"
        f"Mcp-Method: subscriptions/listen\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.connect(("127.0.0.1", port))
    peer.sendall(head.encode() + body)
    return peer


def test_a_healthy_subscription_is_silent() -> None:
    async def main() -> None:
        publisher, got, ready = Publisher(backlog=5), list[str](), asyncio.Event()
        async with running(publisher.app) as port, client_of(f"http://127.0.0.1:{port}/mcp") as client:
            following = asyncio.create_task(follow(client, URIS, got, ready))
            await asyncio.wait_for(ready.wait(), LIMIT)
            for number, event in enumerate(EVENTS):
                await publisher.bus.publish(event)
                await seen.until(lambda wanted=number + 1: len(got) == wanted)  # type: ignore[misc]
            publisher.bus.burst(EVENTS[:5])  # just as many as it holds, and its end behind them
            publisher.handler.close()
            publisher.bus.burst(EVENTS)
            assert await asyncio.wait_for(following, LIMIT) == "graceful"
            await seen.until(lambda: open_listens(seen) == 0)
        assert got == [*URIS, *URIS[:5]]
        assert seen.undelivered == {}
        assert (seen.verdicts, seen.violations) == ([], [])

    with observed() as seen:
        anyio.run(main)


def test_a_client_that_leaves_with_a_full_backlog_has_lost_nothing() -> None:
    steps: list[Json] = [
        {"session": {"session": "M", "protocol": "2026-07-28"}},
        {"request": {"session": "M", "as": "listen", "rpc": {
            "method": "subscriptions/listen", "params": {"notifications": {"resourceSubscriptions": URIS}}}}},
        {"read": {"from": "listen", "events": 1}},
    ]  # fmt: skip

    async def main() -> None:
        publisher = Publisher(backlog=5)
        async with playing(publisher.app) as client:
            await client.play(steps)
            publisher.bus.burst(EVENTS[:5])
            await client.play([{"drop": {"request": "listen"}}])
            await seen.until(lambda: open_listens(seen) == 0)
        assert seen.undelivered == {}

    with observed() as seen:
        anyio.run(main)


def test_nothing_is_kept_of_it_and_nothing_observed_once_the_plugin_is_gone() -> None:
    async def main(publisher: Publisher) -> list[str]:
        got, ready = list[str](), asyncio.Event()
        async with running(publisher.app) as port, client_of(f"http://127.0.0.1:{port}/mcp") as client:
            following = asyncio.create_task(follow(client, URIS, got, ready))
            await asyncio.wait_for(ready.wait(), LIMIT)
            publisher.bus.burst(EVENTS)
            await asyncio.wait_for(following, LIMIT)
        return got

    publisher = Publisher(backlog=5)
    with observed() as seen:
        first = anyio.run(main, publisher)
        told = len(seen.facts)
        assert not publisher.handler._streams._observed
    second = anyio.run(main, Publisher(backlog=5))
    third = anyio.run(main, _again(publisher))
    assert first == second == third, "the client gets the same with us, without us and after us"
    assert len(seen.facts) == told
    assert not publisher.handler._streams
    gc.collect()


def test_a_handler_that_outlives_one_plugin_is_observed_by_the_next() -> None:
    async def main(publisher: Publisher) -> int:
        got, ready = list[str](), asyncio.Event()
        async with running(publisher.app) as port, client_of(f"http://127.0.0.1:{port}/mcp") as client:
            following = asyncio.create_task(follow(client, URIS, got, ready))
            await asyncio.wait_for(ready.wait(), LIMIT)
            publisher.bus.burst(EVENTS)
            await asyncio.wait_for(following, LIMIT)
        return len(got)

    publisher = Publisher(backlog=5)
    for _ in range(2):
        with observed() as seen:
            got = anyio.run(main, _again(publisher))
            assert seen.undelivered == {NO_STREAM: len(URIS) - got}


def _again(publisher: Publisher) -> Publisher:
    """The same handler in a new application: one can be started only once."""
    lowlevel: Any = importlib.import_module("mcp.server.lowlevel")
    publisher.app = lowlevel.Server("test", on_subscriptions_listen=publisher.handler).streamable_http_app()
    return publisher

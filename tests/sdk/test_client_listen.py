"""A subscription that the SDK's client gives up by itself, since nobody takes what comes: lost, though never cut."""

from __future__ import annotations

import importlib
from typing import Any

import anyio
import pytest

from otel_mcp_resume.sdk.client_listen import HOOKS
from tests.sdk.client_world import IS_MODERN, attempts, counts, faults, plugged, until
from tests.sdk.listening import Publisher, client_of, updated
from tests.sdk.server_side import quiet, running

pytestmark = pytest.mark.skipif(not IS_MODERN, reason="1.x has no such subscriptions")

LIMIT = 30.0
MOST = 8
URIS = [f"test://{number}" for number in range(MOST + 4)]
NOT_RESUMABLE = {"listen unproven not_resumable": 1}


@pytest.fixture(autouse=True)
def small_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's own limit is 1024."""
    monkeypatch.setattr(importlib.import_module("mcp.client.subscriptions"), "_MAX_PENDING_EVENTS", MOST)


async def drain(subscription: Any, got: list[str]) -> str:
    """Takes all that there is, and how it ended."""
    try:
        async for event in subscription:
            got.append(event.uri)  # noqa: PERF401 - what came before an error counts
    except Exception as error:  # noqa: BLE001 - the SDK's own
        return type(error).__name__
    return "graceful"


async def published(publisher: Publisher, plugin: Any, number: int) -> None:
    """The first `number` resources change, and the client's transport has all of it."""
    before = counts(plugin, "mcp_resume_events_total", "stream")["listen"]
    for uri in URIS[:number]:
        await publisher.bus.publish(updated(uri))
    await until(lambda: counts(plugin, "mcp_resume_events_total", "stream")["listen"] == before + number)


def disconnects(plugin: Any) -> dict[str, float]:
    ends = counts(plugin, "mcp_resume_disconnects_total", "stream", "cause")
    return {key: count for key, count in ends.items() if key.startswith("listen")}


def test_an_overflow_is_a_loss_and_listening_again_resumes_nothing() -> None:
    async def main() -> None:
        publisher, got = Publisher(), list[str]()
        async with running(publisher.app) as port, client_of(f"http://127.0.0.1:{port}/mcp") as client:
            async with client.listen(resource_subscriptions=URIS) as subscription:
                await published(publisher, plugin, len(URIS))
                assert await drain(subscription, got) == "SubscriptionLost"
            assert len(got) == MOST
            assert attempts(plugin) == {}
            async with client.listen(resource_subscriptions=URIS) as subscription:
                await published(publisher, plugin, 1)
                assert (await subscription.__anext__()).uri == URIS[0]
                assert attempts(plugin) == NOT_RESUMABLE
            await until(lambda: disconnects(plugin) == {"listen cancelled": 2})
            async with client.listen(resource_subscriptions=URIS):
                pass
        assert attempts(plugin) == NOT_RESUMABLE, "that one was lost once"

    with plugged() as plugin, quiet():
        with_limit(main)
        assert [plugin.hooks[hook] for hook in HOOKS] == [True, True]
        assert counts(plugin, "mcp_resume_violations_total", "rule") == faults(plugin) == {}
        assert plugin.runtime.client.listens == {}


def test_a_server_that_takes_a_subscription_back_has_ended_it() -> None:
    """What the SDK makes of a `notifications/cancelled` that names it, over HTTP+SSE as well as here."""

    async def main() -> None:
        publisher, got = Publisher(), list[str]()
        async with running(publisher.app) as port, client_of(f"http://127.0.0.1:{port}/mcp") as client:
            async with client.listen(resource_subscriptions=URIS) as subscription:
                client.session._intercept_notification(
                    "notifications/cancelled", {"requestId": subscription.subscription_id}
                )
                assert await drain(subscription, got) == "SubscriptionLost"
            async with client.listen(resource_subscriptions=URIS):
                pass
        assert attempts(plugin) == NOT_RESUMABLE

    with plugged() as plugin, quiet():
        with_limit(main)
        assert faults(plugin) == {}


def test_subscriptions_that_are_followed_or_left_or_ended_are_silent() -> None:
    async def main() -> None:
        publisher, got = Publisher(), list[str]()
        async with running(publisher.app) as port, client_of(f"http://127.0.0.1:{port}/mcp") as client:
            async with client.listen(resource_subscriptions=URIS) as subscription:
                await published(publisher, plugin, MOST)  # just as many as it holds
                for _ in range(3):
                    got.append((await subscription.__anext__()).uri)
            async with client.listen(resource_subscriptions=URIS) as subscription:
                await published(publisher, plugin, MOST)
                publisher.handler.close()
                assert await drain(subscription, got) == "graceful"
            async with client.listen(resource_subscriptions=URIS):
                pass
        assert got == [*URIS[:3], *URIS[:MOST]]
        assert set(disconnects(plugin)) == {"listen cancelled", "listen completed"}

    with plugged() as plugin, quiet():
        with_limit(main)
        assert attempts(plugin) == {}
        assert counts(plugin, "mcp_resume_violations_total", "rule") == faults(plugin) == {}
        assert counts(plugin, "mcp_resume_open_streams", "stream") == {}


def test_one_that_was_refused_was_never_lost() -> None:
    async def main() -> None:
        publisher = Publisher()
        publisher.handler._max_subscriptions = 0
        async with running(publisher.app) as port, client_of(f"http://127.0.0.1:{port}/mcp") as client:
            for _ in range(2):
                with pytest.raises(Exception, match="Subscription limit reached"):
                    async with client.listen(resource_subscriptions=URIS):
                        raise AssertionError("it was accepted")

    with plugged() as plugin, quiet():
        with_limit(main)
        assert attempts(plugin) == faults(plugin) == {}


def with_limit(main: Any) -> None:
    async def limited() -> None:
        with anyio.fail_after(LIMIT):
            await main()

    anyio.run(limited)

"""Subscriptions of the real SDK (2026-07-28): a server that publishes, and a client that takes what comes."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import anyio.lowlevel

__all__ = ["Fan", "Publisher", "client_of", "updated"]


def updated(uri: str) -> Any:
    """The event that a resource has changed."""
    return importlib.import_module("mcp.server.subscriptions").ResourceUpdated(uri)


class Fan:
    """A bus like one in front of a broker: it hands on at once whatever has come in."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[Any], None]] = []

    def subscribe(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener) if listener in self.listeners else None

    async def publish(self, event: Any) -> None:
        self.burst([event])
        await anyio.lowlevel.checkpoint()

    def burst(self, events: Sequence[Any]) -> None:
        """All of them, without letting anybody write in between."""
        for event in events:
            for listener in list(self.listeners):
                listener(event)


class Publisher:
    """An application that can be listened to, and its handler of subscriptions."""

    def __init__(self, *, backlog: int = 1024) -> None:
        module = importlib.import_module("mcp.server.subscriptions")
        self.bus = Fan()
        self.handler: Any = module.ListenHandler(self.bus, max_buffered_events=backlog)
        lowlevel: Any = importlib.import_module("mcp.server.lowlevel")
        self.app: Any = lowlevel.Server("test", on_subscriptions_listen=self.handler).streamable_http_app()


def client_of(url: str) -> Any:
    """The SDK's client, which speaks the newest revision."""
    return importlib.import_module("mcp.client").Client(url)

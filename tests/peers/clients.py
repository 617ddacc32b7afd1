"""The clients, as the scenes use them: the Python SDK's, FastMCP's, and those of the TypeScript SDK."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Protocol

from tests.peers.nodejs import running_script
from tests.sdk.client_world import connected, text_of

__all__ = ["Client", "connecting"]


class Client(Protocol):
    """One initialized session."""

    heard: list[str]
    """Texts of the log messages that reached the application."""

    async def call(self, tool: str) -> str:
        """The text of the result. Raises whatever the SDK raises."""
        ...

    async def listen(self) -> None:
        """Asks to be told when the tools change, in the generation without sessions."""
        ...

    async def unlisten(self) -> None:
        """Ends that."""
        ...


@contextlib.asynccontextmanager
async def connecting(kind: str, url: str, home: Path | None, words: Callable[[str], None]) -> AsyncIterator[Client]:
    """`kind` is `python`, `fastmcp`, `sdk1` or `sdk2`. In the end the session is closed with a DELETE.

    `words` is called with what an unwatched SDK reports as an error.
    """
    if kind == "python":
        python = _Python()
        async with connected(url, logging_callback=python.on_log) as python.api:
            yield python
    elif kind == "python-2026":
        python = _Python()
        async with importlib.import_module("mcp").Client(url) as python.api:
            yield python
    elif kind == "fastmcp":
        client = _FastMcp(url)
        async with client.api:
            yield client
    else:
        assert home is not None
        node = _Node(words)
        async with running_script(home, "client.mjs", *_script(kind, url), told=node.on_told) as node.script:
            yield node
            with contextlib.suppress(RuntimeError):  # a session that is gone can't be closed
                await node.script.order("leave")


def _script(kind: str, url: str) -> list[str]:
    sdk, _, revision = kind.partition("-")
    return [sdk, url, revision]


class _Python:
    def __init__(self) -> None:
        self.heard: list[str] = []
        self._listening: asyncio.Task[None] | None = None
        self.api: Any = None

    async def on_log(self, params: Any) -> None:
        self.heard.append(params.data)

    async def call(self, tool: str) -> str:
        return text_of(await self.api.call_tool(tool, {}))

    async def listen(self) -> None:
        acknowledged = asyncio.Event()
        self._listening = asyncio.create_task(self._listen(acknowledged))
        await acknowledged.wait()

    async def _listen(self, acknowledged: asyncio.Event) -> None:
        lost = importlib.import_module("mcp.client.subscriptions").SubscriptionLost
        with contextlib.suppress(lost):
            async with self.api.listen(tools_list_changed=True) as subscription:
                acknowledged.set()
                async for _ in subscription:
                    self.heard.append("tools changed")

    async def unlisten(self) -> None:
        assert self._listening is not None
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)


class _FastMcp:
    def __init__(self, url: str) -> None:
        self.heard: list[str] = []
        fastmcp = importlib.import_module("fastmcp")
        self.api = fastmcp.Client(url, log_handler=self.on_log, mode="legacy")

    async def listen(self) -> None:
        raise NotImplementedError

    async def unlisten(self) -> None:
        raise NotImplementedError

    async def on_log(self, params: Any) -> None:
        self.heard.append(params.data)

    async def call(self, tool: str) -> str:
        return text_of(await self.api.call_tool(tool, {}))


class _Node:
    def __init__(self, words: Callable[[str], None]) -> None:
        self._words = words
        self.heard: list[str] = []
        self.script: Any = None

    def on_told(self, message: dict[str, Any]) -> None:
        if "heard" in message:
            self.heard.append(message["heard"])
        else:
            self._words(f"client: {message['problem']}")

    async def call(self, tool: str) -> str:
        return str(await self.script.order("call", tool=tool))

    async def listen(self) -> None:
        await self.script.order("listen")

    async def unlisten(self) -> None:
        await self.script.order("unlisten")

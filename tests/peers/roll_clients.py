"""Twenty applications on the SDK's client, which do what they are told and leave when they are told to.

Orders are lines on the standard input, answered by a number each: of the clients for which it came true.
The even clients follow the news on the standalone stream; the odd ones make a long call, whose stream is cut like any
other. What the plugin records goes into a file.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp import ClientSession

from otel_mcp_resume.cli.demo.sdk import client_session
from tests.peers.roll_instance import Verdicts, end_with

__all__ = ["NUMBER"]

NUMBER = 20
LONG = 60.0
"""Seconds for an answer, where one is due. Nothing waits for as long as that on a machine that works."""
PATIENCE: Any = timedelta(seconds=LONG) if version("mcp").startswith("1.") else LONG


class Client:
    """One of them."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._session: ClientSession | None = None
        self._heard = asyncio.Event()
        self._leaving = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        self._work: asyncio.Task[Any] | None = None

    async def join(self, url: str) -> bool:
        """Begins a session."""
        self._session = None
        self._heard.clear()
        self._leaving.clear()
        joined = asyncio.Event()
        self._life = asyncio.create_task(self._live(url, joined))
        await joined.wait()
        return self._session is not None

    async def _live(self, url: str, joined: asyncio.Event) -> None:
        async def on_log(_: Any) -> None:
            self._heard.set()

        headers = {"X-Client": str(self.number)}
        try:
            with suppress(Exception):
                async with client_session(
                    url, headers, read_timeout_seconds=PATIENCE, logging_callback=on_log
                ) as session:
                    self._session = session
                    joined.set()
                    await self._leaving.wait()
        finally:
            joined.set()

    async def work(self, limit: str) -> bool:
        """Begins what it is here for, and waits for the first word of it: `limit` seconds once it can only be news."""
        heard = asyncio.create_task(self._heard.wait())
        if self.number % 2:  # each another call, so that each can be known again
            self._work = asyncio.create_task(self._call("export", {"rows": 9000 + self.number, "every": 0.5}))
            await asyncio.wait({heard, self._work}, return_when=asyncio.FIRST_COMPLETED)
        elif await self._call("feed", {"items": 9999, "every": 0.5, "name": "n"}):
            await asyncio.wait({heard}, timeout=float(limit))
        heard.cancel()
        return self._heard.is_set()

    async def word(self, name: str) -> bool:
        """Asks for one word of news, which names the client."""
        return await self._call("feed", {"items": 1, "every": 0.0, "name": f"{name}-{self.number}-"})

    async def look(self) -> bool:
        """Looks after its session."""
        return await self._call("export", {"rows": 1, "every": 0.0})

    async def leave(self) -> bool:
        """Ends the session."""
        if self._work:
            self._work.cancel()
        self._leaving.set()
        assert self._life is not None
        await asyncio.wait({self._life})
        return True

    async def _call(self, tool: str, arguments: dict[str, Any]) -> bool:
        with suppress(Exception):
            assert self._session is not None
            result: Any = await self._session.call_tool(tool, arguments)
            return not getattr(result, "is_error", getattr(result, "isError", False))
        return False


async def count(steps: Iterable[Awaitable[bool]]) -> int:
    """How many come true."""
    return sum(await asyncio.gather(*steps))


async def main(log: Path) -> None:
    Verdicts.into(log)
    clients = [Client(number) for number in range(NUMBER)]
    orders: asyncio.Queue[str] = asyncio.Queue()
    end_with(sys.stdin, asyncio.get_running_loop(), orders.put_nowait)
    while line := await orders.get():
        verb, who, *rest = line.split()
        chosen = [client for client in clients if who == "all" or client.number % 2 == (who == "odd")]
        print(await count(getattr(client, verb)(*rest) for client in chosen), flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))

"""A client that holds many sessions: first without their GET streams, then with them. Imported in that process only."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

from tests.bench.sdk import connected, http_client

__all__ = ["hold"]

WARM = 10
"""Sessions that are opened before anything is weighed: what the first ones load is no session's weight."""
AT_ONCE = 20
"""Sessions that are opened at the same time, so that neither process waits for the other."""
SHARING = 25 * AT_ONCE
"""Sessions with one HTTP client, whose pool looks at all its connections for each request."""


async def hold(url: str, count: int, say: Callable[..., None], memory: Callable[[], dict[str, Any]]) -> None:
    """Opens sessions, says what it weighs, and goes on when it is told to. The process ends here."""
    async with contextlib.AsyncExitStack() as stack:
        http = await stack.enter_async_context(http_client())
        kept = [await _opened(url, http, held_back=False) for _ in range(WARM)]
        say(**memory())
        await _told()
        for done in range(0, count, AT_ONCE):
            batch = min(AT_ONCE, count - done)
            if done % SHARING == 0 and done:
                http = await stack.enter_async_context(http_client())
            kept += await asyncio.gather(*(_opened(url, http, held_back=True) for _ in range(batch)))
        say(**memory())
        waiting = iter(kept[WARM:])
        while begun := (await _told()).get("begin"):
            for session in islice(waiting, begun):
                await session.begin()
            say(done=True)  # whether the streams are open is for the server to say
        say(**memory())
        await _told()
        os._exit(0)


async def _told() -> dict[str, Any]:
    command: dict[str, Any] = json.loads(await asyncio.to_thread(sys.stdin.readline) or "{}")
    return command


class _Kept:
    """A session in a task of its own: in one task, each would be within the cancel scopes of all before it."""

    def __init__(self, url: str, http: Any, *, held_back: bool) -> None:
        self.begin: Callable[[], Any]
        """Sends the notification that makes the SDK listen, if it was held back."""
        self.ready = asyncio.Event()
        self.task = asyncio.create_task(self._keep(url, http, held_back))

    async def _keep(self, url: str, http: Any, held_back: bool) -> None:
        async with connected(url, http=http) as session:
            send = session.send_notification

            async def keep(notification: Any, *_: Any, **__: Any) -> None:
                self.begin = partial(send, notification)

            if held_back:
                session.send_notification = keep
            await session.initialize()
            self.ready.set()
            await asyncio.Event().wait()


async def _opened(url: str, http: Any, *, held_back: bool) -> _Kept:
    kept = _Kept(url, http, held_back=held_back)
    ready = asyncio.create_task(kept.ready.wait())
    await asyncio.wait((ready, kept.task), return_when=asyncio.FIRST_COMPLETED)
    if kept.task.done():
        await kept.task  # raises what has ended it
    return kept

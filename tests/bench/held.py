"""A client that holds many sessions: first without their GET streams, then with them. Imported in that process only."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.bench.sdk import connected, http_client

__all__ = ["hold"]

WARM = 10
"""Sessions that are opened before anything is weighed: what the first ones load is no session's weight."""


async def hold(url: str, count: int, say: Callable[..., None], memory: Callable[[], dict[str, int]]) -> None:
    """Opens sessions, says what it weighs, and goes on when it is told to. The process ends here."""
    async with contextlib.AsyncExitStack() as stack:
        http = await stack.enter_async_context(http_client())
        await _open(stack, url, http, WARM, held_back=False)
        say(**memory())
        await _told()
        begin = await _open(stack, url, http, count, held_back=True)
        say(**memory())
        await _told()
        for notify in begin:
            await notify()
        say(done=True)  # whether the streams are open is for the server to say
        await _told()
        say(**memory())
        await _told()
        os._exit(0)


async def _told() -> None:
    await asyncio.to_thread(sys.stdin.readline)


async def _open(stack: contextlib.AsyncExitStack, url: str, http: Any, count: int, *, held_back: bool) -> list[Any]:
    """Initialised sessions; those that are held back have not sent the notification that makes the SDK listen."""
    later: list[Any] = []
    for _ in range(count):
        session = await stack.enter_async_context(connected(url, http=http))
        send = session.send_notification

        async def keep(notification: Any, *_: Any, send: Any = send, **__: Any) -> None:
            later.append(partial(send, notification))

        if held_back:
            session.send_notification = keep
        await session.initialize()
    return later

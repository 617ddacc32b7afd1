"""What the demo's servers can do: four tools, as anybody writes them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import anyio

from otel_mcp_resume.cli.demo.sdk import Context

__all__ = ["TOOLS"]

SEAT = {"type": "object", "properties": {"window": {"type": "boolean"}}, "required": ["window"]}


async def export(ctx: Context, rows: int, every: float) -> str:
    """A long call. It reports every row, on the stream that will carry its result."""
    for number in range(1, rows + 1):
        await ctx.info(f"row {number}")
        await asyncio.sleep(every)
    return f"exported {rows} rows"


async def feed(ctx: Context, items: int, every: float, name: str) -> str:
    """Subscribes to news, which come on the session's own stream, long after this call has returned."""
    session: Any = ctx.session

    async def announce() -> None:
        for number in range(1, items + 1):
            await session.send_log_message("info", f"{name} {number}")
            await asyncio.sleep(every)

    _go_on(announce())
    return "subscribed"


async def news(
    ctx: Context, *, items: int, every: float, name: str, started: float | None = None, after: int | None = None
) -> str:
    """Subscribes to a newsroom that all instances speak for: item N comes out N times `every` after `started`.

    Without `started` it opens now, and when that was is the result. Else the items that came out since `after` are the
    result; they are not sent again.
    """
    session: Any = ctx.session
    is_new = started is None
    began = time.time() if started is None else started
    out = int((time.time() - began) / every)

    async def announce() -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody reads them any more
            for number in range(out + 1, items + 1):
                await asyncio.sleep(began + number * every - time.time())
                await session.send_log_message("info", f"{name} {number}")

    _go_on(announce())
    if is_new:
        return repr(began)
    return ", ".join(f"{name} {number}" for number in range(out + 1 if after is None else after + 1, out + 1))


async def book(ctx: Context) -> str:
    """Asks the user something half-way, on the session's own stream, and waits for the answer."""
    await ctx.info("looking for a seat")
    await asyncio.sleep(0.6)
    session: Any = ctx.session
    answer = await session.elicit("A seat at the window?", SEAT)
    return f"booked: {answer.action}"


TOOLS = (export, feed, news, book)

_running: set[asyncio.Task[None]] = set()
"""The event loop itself holds tasks only weakly."""


def _go_on(work: Coroutine[Any, Any, None]) -> None:
    """Goes on with `work` when the call is over."""
    task = asyncio.create_task(work)
    _running.add(task)
    task.add_done_callback(_running.discard)

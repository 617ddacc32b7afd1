"""What the demo's servers can do: three tools, as anybody writes them."""

from __future__ import annotations

import asyncio
from typing import Any

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

    task = asyncio.create_task(announce())
    _running.add(task)
    task.add_done_callback(_running.discard)
    return "subscribed"


async def book(ctx: Context) -> str:
    """Asks the user something half-way, on the session's own stream, and waits for the answer."""
    await ctx.info("looking for a seat")
    await asyncio.sleep(0.6)
    session: Any = ctx.session
    answer = await session.elicit("A seat at the window?", SEAT)
    return f"booked: {answer.action}"


TOOLS = (export, feed, book)

_running: set[asyncio.Task[None]] = set()
"""The event loop itself holds tasks only weakly."""

"""The application of a fleet that moves from HTTP+SSE to streamable HTTP, before and after it learned its lesson."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from otel_mcp_resume.cli.demo.notes import Notes
from otel_mcp_resume.cli.demo.sdk import EventIds, client_session, legacy_session, result_text

__all__ = ["migrate"]

ITEMS, EVERY = 12, 0.2
"""News, and the seconds between two of them."""
SETTLING = 0.3
"""Seconds after which a new session has its own stream. Nothing tells an application when."""


async def migrate(urls: Sequence[str], notes: Notes, done: asyncio.Event) -> None:
    """Reads the news twice, and is moved in the middle of it: once as people did it, once as it should be done."""
    await _read_news(urls[0], notes, "ann", keep_token=True)
    await _read_news(urls[1], notes, "bob", keep_token=False)
    seen = [notes.count(reader) for reader in ("ann", "bob")]
    notes.conclude(f"Ann kept her token and got {seen[0]} of {ITEMS} news, Bob dropped his and got {seen[1]}", moved=1)
    await done.wait()


async def _read_news(url: str, notes: Notes, reader: str, *, keep_token: bool) -> None:
    async def on_log(params: Any) -> None:
        notes.arrived(str(params.data))

    async def on_message(message: Any) -> None:
        if isinstance(message, Exception):
            lost.set()

    ids, lost = EventIds(), asyncio.Event()
    legacy_url = url.replace("/mcp", "/sse")
    async with legacy_session(legacy_url, ids, logging_callback=on_log, message_handler=on_message) as session:
        newsroom: dict[str, Any] = {"items": ITEMS, "every": EVERY, "name": reader}
        # The server says when: by a clock that runs before the call got there, the first items would be out already.
        started = float(result_text(await session.call_tool("news", newsroom)))
        newsroom["started"] = started
        await lost.wait()
    seen = notes.count(reader)
    headers = {"Last-Event-ID": ids.last} if keep_token else {}
    async with client_session(url, headers, logging_callback=on_log) as session:
        await asyncio.sleep(SETTLING)
        if keep_token:  # the server will replay what was missed: that is what the token is for
            await session.call_tool("news", newsroom)
        else:
            missed = result_text(await session.call_tool("news", {**newsroom, "after": seen}))
            for item in filter(None, missed.split(", ")):
                notes.arrived(item)
        await asyncio.sleep(started + (ITEMS + 2) * EVERY - time.time())

"""The client applications of the demo, as anybody writes them on the SDK. None does anything about resumption.

Each opens its session, uses it, concludes what it saw, and keeps the session until `done` is set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from mcp import ClientSession
from mcp.types import ElicitResult

from otel_mcp_resume.cli.demo.migrant import migrate
from otel_mcp_resume.cli.demo.notes import Notes
from otel_mcp_resume.cli.demo.sdk import client_session, result_text

__all__ = ["APPLICATIONS"]

ROWS, ITEMS = 10, 20
PATIENCE = 5
"""Seconds after which an application stops looking. Nothing tells it that there is nothing to wait for."""

Application = Callable[[Sequence[str], Notes, asyncio.Event], Awaitable[None]]


async def export(urls: Sequence[str], notes: Notes, done: asyncio.Event) -> None:
    """Makes one long call and counts the rows that it reports."""
    async with client_session(urls[0], logging_callback=_note_arrivals(notes)) as session:
        call = asyncio.ensure_future(session.call_tool("export", {"rows": ROWS, "every": 0.15}))
        result = await _wait_for(call, notes)
        notes.conclude(f"{notes.count('row')} of {ROWS} rows; {result}")
        await done.wait()
        call.cancel()


async def follow(urls: Sequence[str], notes: Notes, done: asyncio.Event) -> None:
    """Subscribes to news and counts them."""
    async with client_session(urls[0], logging_callback=_note_arrivals(notes)) as session:
        await _subscribe(session, "news")
        await asyncio.sleep(PATIENCE)
        arrived = notes.count("news")
        notes.conclude(f"{arrived} of {ITEMS} news", missing=ITEMS - arrived)
        await done.wait()


async def neighbours(urls: Sequence[str], notes: Notes, done: asyncio.Event) -> None:
    """Two users of one server, each with a session of their own. Only what the first is sent is noted."""
    async with AsyncExitStack() as stack:
        ann = await stack.enter_async_context(client_session(urls[0], logging_callback=_note_arrivals(notes)))
        bob = await stack.enter_async_context(client_session(urls[1]))
        await _subscribe(ann, "ann")
        await _subscribe(bob, "bob")
        await asyncio.sleep(PATIENCE)
        foreign = notes.count("bob")
        notes.conclude(
            f"Ann got {notes.count('ann')} of {ITEMS} news of her own and {foreign} of Bob's", foreign=foreign
        )
        await done.wait()


async def book(urls: Sequence[str], notes: Notes, done: asyncio.Event) -> None:
    """Makes a call that asks the user something."""
    asked = 0

    async def ask_user(_context: Any, _question: Any) -> ElicitResult:
        nonlocal asked
        asked += 1
        return ElicitResult(action="accept", content={"window": True})

    async with client_session(
        urls[0], logging_callback=_note_arrivals(notes), elicitation_callback=ask_user
    ) as session:
        call = asyncio.ensure_future(session.call_tool("book", {}))
        result = await _wait_for(call, notes)
        notes.conclude(f"the user was asked {asked} times; {result}", asked=asked)
        await done.wait()
        call.cancel()


APPLICATIONS: dict[str, Application] = {
    "export": export,
    "follow": follow,
    "neighbours": neighbours,
    "book": book,
    "migrate": migrate,
}


def _note_arrivals(notes: Notes) -> Callable[[Any], Awaitable[None]]:
    async def on_log(params: Any) -> None:
        notes.arrived(str(params.data))

    return on_log


async def _subscribe(session: ClientSession, name: str) -> None:
    await session.call_tool("feed", {"items": ITEMS, "every": 0.2, "name": name})


async def _wait_for(call: asyncio.Future[Any], notes: Notes) -> str:
    """What became of the call, in words."""
    await asyncio.wait({call}, timeout=PATIENCE)
    if not call.done():
        return f"still waiting after {PATIENCE} s"
    if error := call.exception():
        notes.raised(error)
        return "the call failed"
    return result_text(call.result())

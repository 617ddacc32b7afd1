"""A small application on the real SDK client: plays the sessions of a case."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from typing import TYPE_CHECKING

from .application import Application
from .connections import CONNECTIONS
from .steps import HOST, Json, say

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["drive"]


def drive(spec: Json) -> None:
    """Plays `sessions` against the scripted server on `port`, says so, and stays alive."""
    asyncio.run(_play_all(spec["sessions"], spec["port"]))


async def _play_all(sessions: Sequence[Json], port: int) -> None:
    """One session after the other; the last stays open, and so does each that says `stay`.

    Every session is a task of its own, so that one which stays open is left by nobody else.
    """
    for module in ("mcp.client.streamable_http", "mcp.client.sse"):
        importlib.import_module(module)
    say(ready=True)
    tasks: list[asyncio.Task[None]] = []
    for number, entry in enumerate(sessions, start=1):
        stays = bool(entry.get("stay")) or (number == len(sessions) and not entry.get("close"))
        played = asyncio.Event()
        tasks.append(asyncio.create_task(_play(entry, port, played, stays=stays)))
        await played.wait()
        if not stays:
            await asyncio.wait(tasks[-1:])
    say(done=True)
    await asyncio.Event().wait()


async def _play(entry: Json, port: int, played: asyncio.Event, *, stays: bool) -> None:
    connect, path = CONNECTIONS[entry.get("transport", "streamable_http")]
    url = f"http://{HOST}:{port}{entry.get('path', path)}"
    try:
        with contextlib.suppress(Exception):  # what the SDK raises is its own business; the wire is judged
            async with connect(url, entry.get("headers", {})) as api:
                await Application(api).play(entry["steps"])
                if stays:
                    played.set()
                    await asyncio.Event().wait()
    finally:
        played.set()

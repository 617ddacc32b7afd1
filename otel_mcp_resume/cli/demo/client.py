"""A client process of the demo.

An application on the SDK's client, and nothing of the plugin: the environment variable alone brings it in.
It plays once for every `play` that it is told, and keeps its session open until it is told `close`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from otel_mcp_resume.cli.demo.applications import APPLICATIONS
from otel_mcp_resume.cli.demo.notes import Notes
from otel_mcp_resume.cli.demo.orders import Orders, say

__all__ = ["main"]


async def run(name: str, urls: Sequence[str], orders: Orders) -> None:
    """Plays the application again and again, until its task is cancelled."""
    loop, here = asyncio.get_running_loop(), asyncio.current_task()
    assert here is not None
    plays, done = asyncio.Queue[None](), asyncio.Event()

    def in_loop(function: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: we are ending already
            loop.call_soon_threadsafe(function, *args)

    orders.on_line = lambda line: in_loop(done.set) if line == "close" else in_loop(plays.put_nowait, None)
    orders.on_end = lambda: in_loop(here.cancel)
    say("ready")
    while True:
        await plays.get()
        done.clear()
        await play(name, urls, done)
        say("closed")


async def play(name: str, urls: Sequence[str], done: asyncio.Event) -> None:
    """One play. An application that breaks gives a result, too."""
    notes = Notes(say)
    with notes.listening():
        try:
            await APPLICATIONS[name](urls, notes, done)
        except Exception as error:  # noqa: BLE001 - whatever a library raises is what the application gets
            notes.raised(error)
            notes.conclude("the application ended with an error")


def main(argv: Sequence[str], orders: Orders) -> None:
    """Plays the application that `argv` names first, at the addresses after it, until there are no orders any more."""
    name, *urls = argv
    with suppress(asyncio.CancelledError):
        asyncio.run(run(name, urls, orders))

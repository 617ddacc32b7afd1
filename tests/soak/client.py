"""The soak's client: a few users whose sessions come and go."""

from __future__ import annotations

import argparse
import asyncio
import random
from contextlib import suppress
from typing import Any

from otel_mcp_resume.cli.demo.orders import Orders, say
from otel_mcp_resume.cli.demo.sdk import client_session, result_text

LIMIT = 60.0
"""Seconds after which a user gives a session up: a response that was cut before its first id never comes."""


class Tally:
    """What the users saw."""

    def __init__(self) -> None:
        self.sessions = self.results = self.errors = self.notes = 0

    async def noted(self, _: Any) -> None:
        self.notes += 1

    def say(self) -> None:
        say("tally", sessions=self.sessions, results=self.results, errors=self.errors, notes=self.notes)


async def session(url: str, tally: Tally) -> None:
    """A subscription, and calls beside it."""
    async with client_session(url, logging_callback=tally.noted) as api:
        await api.call_tool("news", {"count": random.randint(4, 20)})
        for _ in range(random.randint(1, 3)):
            if result_text(await api.call_tool("rows", {"count": random.randint(2, 8)})) == "done":
                tally.results += 1


async def user(url: str, tally: Tally) -> None:
    """One session after the other. What breaks is what happens to people whose network is cut."""
    while True:
        try:
            await asyncio.wait_for(session(url, tally), LIMIT)
        except Exception:  # noqa: BLE001 - counted, and compared with the processes without the plugin
            tally.errors += 1
        tally.sessions += 1
        await asyncio.sleep(random.random())


async def use(url: str, users: int, orders: Orders) -> None:
    loop, tally = asyncio.get_running_loop(), Tally()
    tasks = [asyncio.create_task(user(url, tally)) for _ in range(users)]

    def in_loop(function: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: we are ending already
            loop.call_soon_threadsafe(function)

    orders.on_line = lambda _: in_loop(tally.say)
    orders.on_end = lambda: in_loop(lambda: [task.cancel() for task in tasks])
    say("ready")
    await asyncio.gather(*tasks, return_exceptions=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--users", type=int, required=True)
    options = parser.parse_args()
    asyncio.run(use(options.url, options.users, Orders()))


if __name__ == "__main__":
    main()

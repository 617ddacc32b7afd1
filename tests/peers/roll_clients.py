"""Twenty applications on the SDK's client that hold streams through a balancer, and connect anew when that fails.

The even ones follow the news on the standalone stream and look after their session now and then; the odd ones make
long calls, whose stream is cut like any other. What the plugin records goes into a file.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

from otel_mcp_resume.cli.demo.sdk import client_session
from tests.peers.roll_instance import Verdicts

NUMBER = 20
PAUSE = 0.5
"""Seconds between two sessions."""
PATIENCE: Any = timedelta(seconds=6) if version("mcp").startswith("1.") else 6.0
"""For an answer. Nothing tells that none will come."""
LINGER = 2.5
"""Seconds until an application leaves a session that does not work: what is re-opened meanwhile is still re-opened."""
LOOK = 2.0
"""Seconds between two looks after a session."""


class Crowd:
    """All of them, and how many have a session that works."""

    def __init__(self) -> None:
        self.holding = 0

    def _changed(self, by: int) -> None:
        self.holding += by
        print(self.holding, flush=True)

    async def live(self, url: str, number: int, *, idle: bool) -> None:
        while True:
            with suppress(Exception):
                headers = {"X-Client": str(number)}
                async with client_session(url, headers, read_timeout_seconds=PATIENCE) as session:
                    if not idle:
                        await session.call_tool("feed", {"items": 999, "every": 0.4, "name": "n"})
                    self._changed(1)
                    try:
                        while True:
                            await asyncio.sleep(LOOK)
                            rows = 8 if number % 2 else 1
                            if not idle:
                                await session.call_tool("export", {"rows": rows, "every": 0.3})
                    except Exception:  # noqa: BLE001 - whatever went wrong: begin anew
                        self._changed(-1)
                        await asyncio.sleep(LINGER)
            await asyncio.sleep(PAUSE)


async def main(url: str, style: str, log: Path) -> None:
    Verdicts.into(log)
    crowd = Crowd()
    tasks = [asyncio.create_task(crowd.live(url, number, idle=style == "idle")) for number in range(NUMBER)]
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))

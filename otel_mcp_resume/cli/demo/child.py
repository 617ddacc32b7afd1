"""A server or client of the demo in a process of its own, enabled by the environment variable only."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from otel_mcp_resume.cli.demo.orders import understood

__all__ = ["Child", "ChildError", "environment"]

PROOF_TIMEOUT = "1.5"
"""Seconds until an attempt without evidence is judged. Twenty by default, which is long to look at."""

GRACE = 5
"""Seconds that a process has to end by itself."""


class ChildError(Exception):
    """A process that is needed ended, or did not start. The text says which, and its last words if it has any."""


def environment(name: str, metrics_port: int) -> dict[str, str]:
    """The environment of one process: what we were given, the plugin switched on, and `/metrics` on that port.

    Settings of the plugin that the user may have made for other processes are left out, those of OpenTelemetry are
    kept: who sends traces somewhere finds those of the demo there, too.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_MCP_RESUME")}
    kept.pop("PROMETHEUS_MULTIPROC_DIR", None)
    beside_proxies = ",".join(filter(None, [kept.get("NO_PROXY") or kept.get("no_proxy"), "127.0.0.1"]))
    return kept | {
        "OTEL_MCP_RESUME": "1",
        "OTEL_MCP_RESUME_METRICS": "prometheus",
        "OTEL_MCP_RESUME_PROOF_TIMEOUT": PROOF_TIMEOUT,
        "OTEL_EXPORTER_PROMETHEUS_HOST": "127.0.0.1",
        "OTEL_EXPORTER_PROMETHEUS_PORT": str(metrics_port),
        "OTEL_SERVICE_NAME": f"demo-{name}",
        "NO_PROXY": beside_proxies,
        "no_proxy": beside_proxies,
    }


class Child:
    """A running process: what it said so far, and what it is told."""

    def __init__(self, name: str, metrics_port: int, process: Process, log: Callable[[str], None]) -> None:
        self.name = name
        self.metrics_port = metrics_port
        self._process = process
        self._log = log
        self._said = list[dict[str, Any]]()
        self._last_words = deque[str](maxlen=15)
        self._changed = asyncio.Condition()
        self._listens = False
        self._over = False
        self._readers = [asyncio.ensure_future(self._read_errors()), asyncio.ensure_future(self._read_messages())]

    @classmethod
    async def start(
        cls, name: str, metrics_port: int, module: str, *arguments: str, log: Callable[[str], None]
    ) -> Child:
        """Starts `python -m module`. `log` takes every line that it writes to its standard error.

        A signal to our own process group, such as Ctrl-C, does not reach it.
        """
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment(name, metrics_port),
            start_new_session=True,
        )
        return cls(name, metrics_port, process, log)

    async def until(self, event: str, **details: Any) -> Mapping[str, Any]:
        """Waits until the process has said so, since it was last told something. What it said.

        Raises:
            ChildError: It ended instead.
        """
        wanted = {"event": event, **details}
        async with self._changed:
            while True:
                for message in self._said:
                    if wanted.items() <= message.items():
                        return message
                if self._over:
                    raise ChildError("\n".join([f"{self.name} ended unexpectedly:", *self._last_words]))
                await self._changed.wait()

    def tell(self, line: str) -> None:
        """Gives an order. What the process said before is forgotten."""
        self._said.clear()
        if self._process.stdin:
            self._process.stdin.write(f"{line}\n".encode())

    async def end(self) -> None:
        """Ends the process, by force if it does not by itself, or is not far enough to hear of it."""
        if self._process.stdin:
            self._process.stdin.close()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._process.wait()), GRACE if self._listens else 0)
        if self._process.returncode is None:
            self._process.kill()
        await asyncio.gather(self._process.wait(), *self._readers)

    async def _read_messages(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if (message := understood(line)) is None:
                self._log(line.decode("utf-8", "replace").rstrip())  # some library prints
                continue
            async with self._changed:
                self._said.append(message)
                self._listens = True
                self._changed.notify_all()
        async with self._changed:
            self._over = True
            self._changed.notify_all()

    async def _read_errors(self) -> None:
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            text = line.decode("utf-8", "replace").rstrip()
            self._last_words.append(text)
            self._log(text)

"""The process in which instrumented processes are born, as the runner sees it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from .process import WHERE, Driven, environment

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from .driven.steps import Json

__all__ = ["Born", "Nursery"]


class Born:
    """A child, of which only the output is known."""

    def __init__(self, stdout: asyncio.StreamReader) -> None:
        self.stdout = stdout

    async def wait(self) -> None:
        """Its nursery looks after it."""


class Nursery:
    """To be started once, with the plugin or without."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._number = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def started(cls, python: str, *, plugin: bool, serve: bool = True) -> AsyncGenerator[Nursery, None]:
        """`serve`: whether the plugin serves `/metrics` itself, on any port. Where it does not, a child can."""
        process = await asyncio.create_subprocess_exec(
            python,
            *("-W", "ignore", "-m", "driven", "nursery"),
            cwd=WHERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=None if os.environ.get("WIRE_STDERR") else subprocess.DEVNULL,
            env=environment("0" if serve else "none", plugin=plugin),
        )
        with tempfile.TemporaryDirectory() as folder:
            try:
                yield cls(process, Path(folder))
            finally:
                process.kill()
                await process.wait()

    @contextlib.asynccontextmanager
    async def child(self, role: str, spec: Json, log: str, metrics: int) -> AsyncGenerator[Driven, None]:
        """A child that plays `spec`. If told where, it writes its log to a file, and serves metrics on a port."""
        self._number += 1
        pipe = self._folder / str(self._number)
        os.mkfifo(pipe)
        output = os.fdopen(os.open(pipe, os.O_RDWR), "rb")  # does not wait for a writer, nor end when one leaves
        assert self._process.stdin is not None
        order = {"role": role, "spec": spec, "log": log, "metrics": metrics, "pipe": str(pipe)}
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        pid, stack = 0, contextlib.ExitStack()
        try:
            reader = asyncio.StreamReader()
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), output
            )
            stack.callback(transport.close)  # closes `output`, too
            driven = Driven(Born(reader), metrics)
            pid = (await driven.message())["pid"]
            yield driven
        finally:
            stack.close()
            pipe.unlink()
            if pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

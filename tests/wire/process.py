"""The instrumented process, as the runner sees it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .cases import CaseError
from .machine import reserved_port
from .samples import Sample, parse_metrics

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from .driven.steps import Json
    from .nursery import Born

__all__ = ["PROOF_TIMEOUT", "WHERE", "Driven", "environment"]

PROOF_TIMEOUT = 1.5
"""Seconds, as OTEL_MCP_RESUME_PROOF_TIMEOUT."""

SCRAPE_LIMIT = 3.0
LINE_LIMIT = 1 << 20
WHERE = Path(__file__).parent


class Driven:
    """A child process that runs the `driven` package under the interpreter being tested."""

    def __init__(self, process: asyncio.subprocess.Process | Born, metrics_port: int) -> None:
        self.process = process
        self.metrics_port = metrics_port

    @classmethod
    @contextlib.asynccontextmanager
    async def started(cls, python: str, role: str, spec: Json, *, plugin: bool) -> AsyncGenerator[Driven, None]:
        """`spec` is what the process has to play. WIRE_STDERR=1 shows what it writes to stderr."""
        with reserved_port() as port:
            process = await asyncio.create_subprocess_exec(
                python,
                *("-W", "ignore", "-m", "driven", role),
                cwd=WHERE,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if os.environ.get("WIRE_STDERR") else subprocess.DEVNULL,
                env=environment(str(port), plugin=plugin),
                limit=LINE_LIMIT,
            )
            assert process.stdin is not None
            process.stdin.write(json.dumps(spec).encode() + b"\n")
            process.stdin.close()
            try:
                yield cls(process, port)
            finally:
                if process.returncode is None:
                    process.kill()
                await process.wait()

    async def message(self) -> Json:
        """The next line that the child wrote for us. Raises `CaseError` if it ended."""
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            with contextlib.suppress(ValueError):
                message: Any = json.loads(line)
                if isinstance(message, dict):
                    return cast("Json", message)
        raise CaseError("the instrumented process ended early (WIRE_STDERR=1 shows why)")

    async def metrics(self) -> list[Sample] | None:
        """The current /metrics, or None while nobody serves them in time."""
        try:
            reader, writer = await asyncio.open_connection("localhost", self.metrics_port)
        except OSError:
            return None
        try:
            writer.write(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
            answer = await asyncio.wait_for(reader.read(), SCRAPE_LIMIT)
        except (OSError, asyncio.TimeoutError):
            return None
        finally:
            writer.close()
        _, _, text = answer.decode().partition("\r\n\r\n")
        return parse_metrics(text)


def environment(port: str, *, plugin: bool) -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    inherited |= {"NO_PROXY": "*", "no_proxy": "*"}
    if not plugin:
        return inherited
    return inherited | {
        "OTEL_MCP_RESUME": "1",
        "OTEL_EXPORTER_PROMETHEUS_PORT": port,
        "OTEL_MCP_RESUME_PROOF_TIMEOUT": str(PROOF_TIMEOUT),
        "OTEL_TRACES_EXPORTER": "none",
    }

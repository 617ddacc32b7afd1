"""A process of an arm, as the benchmark sees it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.bench.arms import ARMS

__all__ = ["Child", "ChildError", "started"]

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 10.0
"""Seconds that a process may take to end by itself."""


class ChildError(RuntimeError):
    """A process of the benchmark ended, or said something that makes its figures worthless."""


class Child:
    """One running process. It answers each command with one line."""

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        self._process = process
        self._name = name

    def ask(self, **command: Any) -> dict[str, Any]:
        """Sends a command, if there is one, and waits for the answer."""
        if command:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ChildError(f"{self._name} ended with {self._process.wait(PATIENCE)}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def count(self) -> None:
        """Lets callgrind, below which it runs, begin to count. Raises `CalledProcessError` if it does not."""
        command = ["callgrind_control", "-i", "on", str(self._process.pid)]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)


@contextlib.contextmanager
def started(role: str, arm: str, sink: str, below: Sequence[str] = (), **options: Any) -> Iterator[Child]:
    """A process with that role, run by the command `below`, if there is one. What it writes to stderr is shown."""
    process = subprocess.Popen(
        [*below, sys.executable, "-W", "ignore", "-m", "tests.bench.child", role, arm, sink, json.dumps(options)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=ARMS[arm].variables(),
    )
    try:
        yield Child(process, f"{role} of {arm}")
    finally:
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

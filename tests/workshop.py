"""Where the rows of the matrix are run: the wheel, a copy of the tests, and an environment for each row."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Row", "Workshop", "find_python"]

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "otel_mcp_resume"
BASE = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Row:
    """One combination. A full row runs everything but what is marked `once`, the others also leave out `full`."""

    name: str
    mcp: str
    python: str = BASE
    full: bool = False
    once: bool = False
    """Whether this is the row for what has nothing to do with Python or mcp."""
    light: bool = False
    """Whether only what depends on Python and mcp together is run; other rows do the rest with either."""
    left_out: tuple[str, ...] = ()
    """Folders of the tests to which this row adds nothing that others do not do."""
    lowest: bool = False
    """Whether every dependency is the oldest that we say we work with."""
    also: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Dependency groups beside `test`."""


class Workshop:
    """A temporary directory with the wheel, the copy of the tests, and the virtual environments."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._uv = str(Path(sys.executable).with_name("uv"))
        self.tree = work / "tree"

    def prepare(self) -> None:
        """Builds the wheel, and copies everything but the package, which stays in reach of those who ask for it."""
        self._call("build", "--quiet", "--wheel", "--out-dir", self._work / "dist", ROOT)
        hidden = shutil.ignore_patterns(".*", "__pycache__", "dist", "build")
        shutil.copytree(ROOT, self.tree / "source", ignore=hidden)
        shutil.copytree(ROOT, self.tree, ignore=lambda d, n: {*hidden(d, n), PACKAGE}, dirs_exist_ok=True)

    @property
    def wheel(self) -> Path:
        return next((self._work / "dist").glob("*.whl"))

    def environment(self, row: Row, python: str, *groups: str) -> Path:
        """A virtual environment with the wheel, the row's mcp, and our dependency groups. Its interpreter."""
        home = self._work / row.name
        self._call("venv", "--quiet", "--python", python, home)
        interpreter = home / "bin" / "python"
        project = ROOT / "pyproject.toml"
        what: list[str | Path] = [self.wheel, row.mcp, *row.also, *(f"--group={project}:{group}" for group in groups)]
        if row.lowest:
            self._install(interpreter, "--resolution", "lowest-direct", "-r", project, row.mcp, *row.also)
            lowest = home / "lowest.txt"
            lowest.write_text(self._call("pip", "freeze", "--quiet", "--python", interpreter))
            what += ["--constraint", lowest]
        self._install(interpreter, *what)
        return interpreter

    def _install(self, interpreter: Path, *what: str | Path) -> None:
        self._call("pip", "install", "--quiet", "--python", interpreter, *what)

    def _call(self, *arguments: str | Path) -> str:
        """What uv says. Raises `CalledProcessError`, after uv has told why."""
        environ = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
        command = [self._uv, *map(str, arguments)]
        return subprocess.run(command, check=True, env=environ, stdout=subprocess.PIPE, text=True).stdout


def find_python(version: str) -> str | None:
    """An interpreter of that version that runs: on the PATH, or one of pyenv's."""
    if version == BASE:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"versions/{version}.*/bin/python"))]
    return next((str(found) for found in candidates if found and _is_python(str(found), version)), None)


def _is_python(executable: str, version: str) -> bool:
    command = [executable, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.returncode == 0 and run.stdout.strip() == version

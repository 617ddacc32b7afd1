"""Runs the tests against the built wheel, once for each supported combination of Python and mcp.

Called by `tests/run`, which brings uv. Every row gets a virtual environment of its own, and a copy of the tests beside
which there is no package to import by accident.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "otel_mcp_resume"
BASE = f"{sys.version_info.major}.{sys.version_info.minor}"
WORKERS = str(2 * (os.cpu_count() or 1))
"""Most tests wait for processes more than they compute."""
SECOND_TRIES = 30
"""Failures up to which a row is tried again. More are no accident."""
ROW_LIMIT = 2400.0
"""Seconds."""


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
    lowest: bool = False
    """Whether every dependency is the oldest that we say we work with."""
    also: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Dependency groups beside `test`."""


ROWS = (
    Row("newest-2", "mcp<3", full=True, once=True, groups=("peers", "fastmcp")),
    Row("newest-1", "mcp<2", full=True, groups=("peers",)),
    Row("2.0.1", "mcp==2.0.1", python="3.12"),
    Row("1.23.3", "mcp==1.23.3", python="3.13"),
    Row(
        "1.12.4-lowest",
        "mcp==1.12.4",
        python="3.10",
        lowest=True,
        also=("pydantic>=2.12,<2.13", "opentelemetry-api<1.45"),  # broke later; and as the rest
    ),
    Row("newest-2-py310", "mcp<3", python="3.10", light=True),
    Row("newest-2-py313", "mcp<3", python="3.13", light=True),
    Row("newest-1-py310", "mcp<2", python="3.10", light=True),
    Row("newest-1-py313", "mcp<2", python="3.13", light=True),
)
LEFT_OUT_WHERE_LIGHT = ("rules", "report", "watch", "wire", "cli")
"""Folders of the tests."""

PROMETHEUS_TOOLS = ("promtool", "amtool")
"""Without them, what is marked `prom` is left out. `tests/run` has said so."""

LINT = "lint"
CHECKS = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    ("pyright",),
)


@dataclass
class Result:
    """What came of a row."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    remark: str = ""


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


def run_tests(workshop: Workshop, row: Row, extra: Sequence[str]) -> Result:
    """Runs pytest in the row's environment."""
    python = find_python(row.python)
    if python is None and row.light:
        return Result(row.name, remark=f"not run: no Python {row.python} here")
    remark = "" if python else f"with Python {BASE}: no {row.python} here."
    interpreter = workshop.environment(row, python or sys.executable, "test", *row.groups)
    report = workshop.tree / f"{row.name}.xml"
    command = [
        str(interpreter),
        "-m",
        "pytest",
        "-q",
        "-n",
        WORKERS,
        "--dist",
        "loadgroup",
        "--durations=10",
        f"--junitxml={report}",
        "-o",
        f"cache_dir=.cache-{row.name}",
        *(f"--ignore=tests/{folder}" for folder in LEFT_OUT_WHERE_LIGHT if row.light),
    ]
    wanted = {"full": row.full, "once": row.once, "prom": all(map(shutil.which, PROMETHEUS_TOOLS))}
    left_out = [marker for marker, is_wanted in wanted.items() if not is_wanted]
    command += [*(("-m", " and ".join(f"not {marker}" for marker in left_out)) if left_out else ()), *extra]
    environ = {**os.environ, "TESTED_WHEEL": str(workshop.wheel), "UV_PYTHON_DOWNLOADS": "never"}
    environ.pop("PYTHONPATH", None)
    if not row.once:
        environ["WIRE_NURSERY"] = "1"
    try:
        code = subprocess.run(command, cwd=workshop.tree, env=environ, check=False, timeout=ROW_LIMIT).returncode
    except subprocess.TimeoutExpired:
        return Result(row.name, failed=1, remark=f"stopped after {ROW_LIMIT:.0f} s")
    result = _read(row.name, report)
    result.remark = remark
    if code and not result.failed:
        result.failed, result.remark = 1, f"pytest ended with {code}"
    elif 0 < result.failed <= SECOND_TRIES:
        _try_again(workshop, command, environ, result)
    return result


def _try_again(workshop: Workshop, command: Sequence[str], environ: dict[str, str], result: Result) -> None:
    """Plays what failed once more, one at a time: fleets of processes with time limits need a machine that has time.

    What fails again has failed; what does not is named in the table.
    """
    # With one worker and not without: the name of a test that belongs to a group has that in it.
    alone = [*command, "-n", "1", "--last-failed", "--last-failed-no-failures", "none"]
    print(f"\n=== {result.name}, the {result.failed} that failed, one at a time", flush=True)
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(alone, cwd=workshop.tree, env=environ, check=False, timeout=ROW_LIMIT)
        again = _read(result.name, workshop.tree / f"{result.name}.xml")
        result.remark += f"{result.failed} failed beside others, {again.passed} of them passed alone"
        result.passed += again.passed  # what was not found again has failed
        result.failed = max(again.failed, result.failed - again.passed)


def _read(name: str, report: Path) -> Result:
    if not report.exists():
        return Result(name)
    suites = list(ET.parse(report).iter("testsuite"))
    tests, bad, skipped = (
        sum(int(suite.get(key, 0)) for suite in suites for key in keys)
        for keys in (("tests",), ("failures", "errors"), ("skipped",))
    )
    return Result(name, tests - bad - skipped, bad, skipped)


def run_checks(workshop: Workshop) -> Result:
    """Lint and types, once, against the newest mcp. Each tool counts as one test."""
    interpreter = workshop.environment(Row(LINT, ROWS[0].mcp), sys.executable, "test", "lint")
    result = Result(LINT)
    for tool, *arguments in CHECKS:
        command = [str(interpreter.with_name(tool)), *arguments]
        environ = {**os.environ, "PATH": f"{interpreter.parent}{os.pathsep}{os.environ['PATH']}"}
        if subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode:
            result.failed += 1
            result.remark = f"{result.remark} {tool}".strip()
        else:
            result.passed += 1
    return result


def run_all(workshop: Workshop, names: Sequence[str], extra: Sequence[str]) -> Iterator[Result]:
    """The chosen rows, one after the other: each uses all cores by itself."""
    for name in names:
        print(f"\n=== {name}", flush=True)
        started = time.monotonic()
        try:
            if name == LINT:
                result = run_checks(workshop)
            else:
                result = run_tests(workshop, next(row for row in ROWS if row.name == name), extra)
        except subprocess.CalledProcessError as error:
            result = Result(name, failed=1, remark=f"could not be set up: {error.cmd[1]}")
        result.seconds = time.monotonic() - started
        yield result


def main() -> int:
    names = [LINT, *(row.name for row in ROWS)]
    parser = argparse.ArgumentParser(prog="tests/run", description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"all of them if none is named: {', '.join(names)}")
    options, extra = parser.parse_known_args()
    if unknown := sorted(set(options.rows) - set(names)):
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(names)}")
    workshop = Workshop(options.work)
    workshop.prepare()
    results = list(run_all(workshop, options.rows or names, extra))
    print(f"\n{'':16}  passed  failed  skipped  seconds")
    for each in results:
        counts = f"{each.passed:6}  {each.failed:6}  {each.skipped:7}  {each.seconds:7.0f}"
        print(f"{each.name:16}  {counts}  {each.remark}".rstrip())
    passed, failed, skipped = (sum(getattr(each, key) for each in results) for key in ("passed", "failed", "skipped"))
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return int(bool(failed) or not passed)


if __name__ == "__main__":
    sys.exit(main())

"""Runs the tests against the built wheel, once for each supported combination of Python and mcp.

Called by `tests/run`, which brings uv. Every row gets a virtual environment of its own, and a copy of the tests beside
which there is no package to import by accident. What a row says is shown when it is done, if there are several.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from xml.etree import ElementTree as ET

from tests.workshop import BASE, ROOT, Row, Workshop, find_python

AT_A_TIME = 2
"""Rows that are run side by side: the tests of one go on while the other is set up, or waits for its slowest."""
WORKERS = 2 * (os.cpu_count() or 1)
"""Of all rows together. Most tests wait for processes more than they compute."""
SECOND_TRIES = 30
"""Failures up to which a row is tried again. More are no accident."""
ROW_LIMIT = 3300.0
"""Seconds."""

LOGIC = ("rules", "report", "watch")
"""What knows nothing of mcp, and has been run where Python and all the rest are the same."""
LEFT_OUT_WHERE_LIGHT = (*LOGIC, "wire", "cli")

ROWS = (
    Row("newest-2", "mcp<3", full=True, once=True, groups=("peers", "fastmcp")),
    Row("newest-1", "mcp<2", full=True, left_out=LOGIC, groups=("peers",)),
    Row("2.0.1", "mcp==2.0.1", python="3.12", left_out=("cli",)),
    Row("1.23.3", "mcp==1.23.3", python="3.13", left_out=("cli",)),
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
    command: list[str] = field(default_factory=list)
    """What ran its tests."""


class Rows:
    """The rows that were called for, some at a time."""

    def __init__(self, workshop: Workshop, names: Sequence[str], extra: Sequence[str]) -> None:
        self._workshop = workshop
        self._names = names
        self._extra = extra
        self._lanes = min(AT_A_TIME, len(names))
        self._said = threading.Lock()

    def results(self) -> Iterator[Result]:
        """Each as soon as it is there, but those with failures, which come last: they are played again alone."""
        again: list[Result] = []
        with ThreadPoolExecutor(self._lanes) as pool:
            for future in as_completed([pool.submit(self._run, name) for name in self._names]):
                result = future.result()
                if result.command and 0 < result.failed <= SECOND_TRIES:
                    again.append(result)
                else:
                    yield result
        for result in again:
            self._try_again(result)
            yield result

    def _run(self, name: str) -> Result:
        started = time.monotonic()
        with contextlib.ExitStack() as stack:
            told: IO[str] | None = None
            if self._lanes > 1:  # what two say at a time nobody can read
                print(f"=== {name} begins", flush=True)
                told = stack.enter_context((self._workshop.tree / f"{name}.log").open("w+"))
            try:
                if name == LINT:
                    result = self._checks(told)
                else:
                    result = self._tests(next(row for row in ROWS if row.name == name), told)
            except subprocess.CalledProcessError as error:
                result = Result(name, failed=1, remark=f"could not be set up: {error.cmd[1]}")
            if told is not None:
                told.seek(0)
                with self._said:
                    print(f"\n=== {name}\n{told.read()}", flush=True)
        result.seconds = time.monotonic() - started
        return result

    def _tests(self, row: Row, told: IO[str] | None) -> Result:
        """Runs pytest in the row's environment."""
        python = find_python(row.python)
        if python is None and row.light:
            return Result(row.name, remark=f"not run: no Python {row.python} here")
        interpreter = self._workshop.environment(row, python or sys.executable, "test", *row.groups)
        workers = max(WORKERS // self._lanes, 1)
        command = [str(interpreter), "-m", "pytest", "-q", "-n", str(workers), "--dist", "loadgroup", "--durations=10"]
        command += [f"--junitxml={self._report(row.name)}", "-o", f"cache_dir=.cache-{row.name}"]
        command += [f"--ignore=tests/{folder}" for folder in (LEFT_OUT_WHERE_LIGHT if row.light else row.left_out)]
        wanted = {
            "full": row.full,
            "once": row.once,
            "apart": not row.light,
            "prom": all(map(shutil.which, PROMETHEUS_TOOLS)),
        }
        unwanted = [marker for marker, is_wanted in wanted.items() if not is_wanted]
        command += [*(("-m", " and ".join(f"not {marker}" for marker in unwanted)) if unwanted else ()), *self._extra]
        code = self._pytest(row.name, command, told)
        if code is None:
            return Result(row.name, failed=1, remark=f"stopped after {ROW_LIMIT:.0f} s")
        result = _read(row.name, self._report(row.name))
        result.remark = "" if python else f"with Python {BASE}: no {row.python} here."
        if code and not result.failed:
            result.failed, result.remark = 1, f"pytest ended with {code}"
        else:
            result.command = command
        return result

    def _report(self, name: str) -> Path:
        return self._workshop.tree / f"{name}.xml"

    def _pytest(self, name: str, command: Sequence[str], told: IO[str] | None = None) -> int | None:
        """What it ends with, if it ends in time."""
        environ = {**os.environ, "TESTED_WHEEL": str(self._workshop.wheel), "UV_PYTHON_DOWNLOADS": "never"}
        # One row proves for some cases of every kind that the variable switches a process on which is started.
        environ["WIRE_NURSERY"] = "most" if any(row.once for row in ROWS if row.name == name) else "1"
        # Each of the many processes would compile all that it imports.
        for variable in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
            environ.pop(variable, None)
        try:
            return subprocess.run(
                command,
                cwd=self._workshop.tree,
                env=environ,
                stdout=told,
                stderr=told and subprocess.STDOUT,
                check=False,
                timeout=ROW_LIMIT,
            ).returncode
        except subprocess.TimeoutExpired:
            return None

    def _try_again(self, result: Result) -> None:
        """Plays what failed once more, one at a time: fleets of processes with time limits need a machine with time.

        What fails again has failed; what does not is named in the table.
        """
        started = time.monotonic()
        alone = [*result.command, "-n", "1", *self._failed(result.name)]
        print(f"\n=== {result.name}, the {result.failed} that failed, one at a time", flush=True)
        if self._pytest(result.name, alone) is not None:
            again = _read(result.name, self._report(result.name))
            result.remark += f"{result.failed} failed beside others, {again.passed} of them passed alone"
            result.passed += again.passed  # what was not found again has failed
            result.failed = max(again.failed, result.failed - again.passed)
        result.seconds += time.monotonic() - started

    def _failed(self, name: str) -> list[str]:
        """What failed in a row. `--last-failed` misses tests of a group: their names have that in them."""
        known = self._workshop.tree / f".cache-{name}" / "v" / "cache" / "lastfailed"
        return [re.sub(r"@[\w-]+$", "", test) for test in json.loads(known.read_text())]

    def _checks(self, told: IO[str] | None) -> Result:
        """Lint and types, once, against the newest mcp. Each tool counts as one test."""
        interpreter = self._workshop.environment(Row(LINT, ROWS[0].mcp), sys.executable, "test", "lint")
        result = Result(LINT)
        for tool, *arguments in CHECKS:
            command = [str(interpreter.with_name(tool)), *arguments]
            environ = {**os.environ, "PATH": f"{interpreter.parent}{os.pathsep}{os.environ['PATH']}"}
            run = subprocess.run(
                command, cwd=ROOT, env=environ, stdout=told, stderr=told and subprocess.STDOUT, check=False
            )
            if run.returncode:
                result.failed += 1
                result.remark = f"{result.remark} {tool}".strip()
            else:
                result.passed += 1
        return result


def _read(name: str, report: Path) -> Result:
    if not report.exists():
        return Result(name)
    suites = list(ET.parse(report).iter("testsuite"))
    tests, bad, skipped = (
        sum(int(suite.get(key, 0)) for suite in suites for key in keys)
        for keys in (("tests",), ("failures", "errors"), ("skipped",))
    )
    return Result(name, tests - bad - skipped, bad, skipped)


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
    chosen = options.rows or names
    results = sorted(Rows(workshop, chosen, extra).results(), key=lambda result: chosen.index(result.name))
    print(f"\n{'':16}  passed  failed  skipped  seconds")
    for each in results:
        counts = f"{each.passed:6}  {each.failed:6}  {each.skipped:7}  {each.seconds:7.0f}"
        print(f"{each.name:16}  {counts}  {each.remark}".rstrip())
    passed, failed, skipped = (sum(getattr(each, key) for each in results) for key in ("passed", "failed", "skipped"))
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return int(bool(failed) or not passed)


if __name__ == "__main__":
    sys.exit(main())

"""Instructions for each walk of a path, counted by callgrind: the same on a busy machine as on an idle one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.process import ROOT

__all__ = ["BASELINE", "REFERENCE", "baseline", "callgrind", "count", "is_possible", "relative", "total", "update"]

WALKER = ROOT / "tests" / "bench" / "walker.py"
_TOTAL = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)
LIMIT = 600.0
"""Seconds."""
REFERENCE = "reference"
BASELINE = Path(__file__).with_name("instructions.json")
"""By minor version of Python and by title: what a walk costs in walks of the reference."""
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def is_possible() -> bool:
    """Whether valgrind is installed."""
    return shutil.which("valgrind") is not None


def count(python: str = sys.executable) -> dict[str, float]:
    """By title: instructions that the plugin adds to one walk, and those of one walk of the reference.

    The walker calls `getppid` between its parts, and callgrind dumps what it has counted since the last call. Raises
    `CalledProcessError` if valgrind fails.
    """
    environ = {
        key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "PYTHON", "PROMETHEUS_"))
    }
    environ |= {"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        command = [*callgrind(folder), python, str(WALKER)]
        run = subprocess.run(
            command, env=environ, cwd=folder, capture_output=True, text=True, check=True, timeout=LIMIT
        )
        parts = [line.split("\t") for line in run.stdout.splitlines()]
        dumps = [total(Path(folder, f"out.{number}")) for number in range(1, 2 * len(parts) + 1)]
    counts = dict(zip([name for name, _ in parts], dumps[1::2], strict=True))
    times = {name: int(number) for name, number in parts}
    return _per_walk(counts, times)


def callgrind(folder: str) -> list[str]:
    """The command that counts those of another one, and dumps into `folder` whenever that calls `getppid`."""
    files = f"--callgrind-out-file={folder}/out", f"--log-file={folder}/log"
    return ["valgrind", "--quiet", "--tool=callgrind", *files, "--dump-before=getppid", "--dump-line=no"]


def total(dump: Path) -> int:
    """What one dump has counted."""
    found = _TOTAL.search(dump.read_text())
    assert found is not None, f"{dump} has no total"
    return int(found[1])


def _per_walk(counts: dict[str, int], times: dict[str, int]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, instructions in counts.items():
        title, _, kind = name.partition(": ")
        if kind == "watched":
            found[title] = (instructions - counts[f"{title}: bare"]) / times[name]
        elif not kind:
            found[title] = instructions / times[name]
    return found


def relative(counts: dict[str, float]) -> dict[str, float]:
    """The same in walks of the reference, so that two builds of one version of Python can be compared."""
    return {title: each / counts[REFERENCE] for title, each in counts.items() if title != REFERENCE}


def baseline() -> dict[str, float]:
    """What is committed for this version of Python; nothing for one that was never counted."""
    known: dict[str, dict[str, float]] = json.loads(BASELINE.read_text())
    return known.get(_PYTHON, {})


def update(counts: dict[str, float]) -> None:
    """Makes the counts the new baseline."""
    known = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    known[_PYTHON] = {title: round(each, 3) for title, each in relative(counts).items()}
    BASELINE.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")

"""A share of all points at which something can fail; `python -m tests.faults` tries every one, and prints the table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARE = 16
"""One point in so many, always the same: some 6 s of processor time a side."""


@pytest.mark.once
@pytest.mark.timeout(300)
@pytest.mark.parametrize("side", ["client", "server"])
def test_whatever_fails_the_application_goes_on(side: str) -> None:
    modes = ("--mode", "raise", "--mode", "nonsense", "--mode", "hang")
    command = [sys.executable, "-m", "tests.faults", "--side", side, *modes, "--share", str(SHARE)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr[-3000:]
    total = next(line for line in run.stdout.splitlines() if line.startswith("all ")).split()
    assert int(total[1]) >= 10, run.stdout
    assert total[-1] == "0", run.stdout


@pytest.mark.once
def test_a_sweep_that_tests_nothing_is_no_success() -> None:
    command = [sys.executable, "-m", "tests.faults", "--side", "client", "--mode", "raise", "--only", "no such point"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr.splitlines()[-1]) == (2, "no point was tested")


@pytest.mark.once
@pytest.mark.timeout(300)
def test_a_fault_that_escapes_is_found() -> None:
    """The wall taken away: what would have been swallowed reaches the application, and is told."""
    code = (
        "import sys, runpy\n"
        "sys.argv = ['faults', '--side', 'client', '--mode', 'raise', '--only', 'HttpTap._learn']\n"
        "from tests.faults import sites\n"
        "sites.install()\n"
        "from otel_mcp_resume.sdk.guard import Guard\n"
        "Guard.__call__ = lambda self, hook, function: function\n"
        "sites.install = lambda: None\n"
        "runpy.run_module('tests.faults', run_name='__main__')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "another result" in run.stdout

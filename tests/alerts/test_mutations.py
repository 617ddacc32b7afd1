"""A test that no change can fail proves nothing: every small change of a rule must be noticed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.prom, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]


def mutate(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.alerts.mutate", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_change_is_noticed(tool: Callable[[str], str], rule_name: str) -> None:
    tool("promtool")
    run = mutate(rule_name)
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_change_that_no_test_notices_is_reported(tool: Callable[[str], str], directory: Path, tmp_path: Path) -> None:
    """The script itself can fail: with the tests of an alert gone, everything goes unnoticed."""
    tool("promtool")
    copy = shutil.copytree(directory, tmp_path / "alerts")
    (copy / "tests" / "McpResumePluginFaulty.yml").write_text("rule_files: [../mcp-resume.alerts.yml]\ntests: []\n")
    run = mutate("--alerts", str(copy), "McpResumePluginFaulty")
    assert run.returncode == 1
    assert "increase" not in run.stdout
    assert "McpResumePluginFaulty: warning 4: > becomes >=" in run.stdout
    assert " 0 noticed" in run.stdout

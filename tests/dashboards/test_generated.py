"""The committed JSON is what the code writes, to the byte."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("grafana_foundation_sdk") is None,
    reason="grafana-foundation-sdk needs Python 3.11; the JSON is the same for all",
)


def generate(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dashboards.generate", *options]
    environ = {**os.environ, "PYTHONHASHSEED": "random"}
    return subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, timeout=60, check=False)


def test_what_is_committed_is_up_to_date(directory: Path) -> None:
    run = generate(directory.parent, "--check")
    assert run.returncode == 0, run.stderr


def test_the_same_bytes_come_out_elsewhere(directory: Path, tmp_path: Path) -> None:
    assert generate(directory.parent, "--out", str(tmp_path)).returncode == 0
    names = {path.name for path in directory.glob("mcp-resume-*.json")}
    assert {path.name for path in tmp_path.iterdir()} == names
    for name in names:
        assert (tmp_path / name).read_bytes() == (directory / name).read_bytes()


def test_a_stale_file_is_told(directory: Path, tmp_path: Path) -> None:
    shutil.copytree(directory, tmp_path / "here", ignore=shutil.ignore_patterns("__pycache__", "*.png"))
    stale = tmp_path / "here" / "mcp-resume-server.json"
    stale.write_text(stale.read_text().replace("Ledger", "Legder"))
    run = generate(directory.parent, "--check", "--out", str(tmp_path / "here"))
    assert run.returncode == 1
    assert "mcp-resume-server.json is out of date" in run.stderr


def test_runbooks_may_be_served_elsewhere(directory: Path, tmp_path: Path) -> None:
    run = generate(directory.parent, "--out", str(tmp_path), "--runbooks", "https://wiki.example.com/mcp/")
    assert run.returncode == 0
    text = "".join(path.read_text() for path in tmp_path.iterdir())
    assert "https://wiki.example.com/mcp/McpResumeSilentGap.md" in text
    assert "github.com" not in text

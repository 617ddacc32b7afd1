from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROCESS = [sys.executable, "-m", "otel_mcp_resume.cli.demo.process"]


def test_one_that_hangs_while_it_starts_ends_with_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mcp.py").write_text("print('importing', flush=True); import time; time.sleep(60)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    pipe = subprocess.PIPE
    with subprocess.Popen([*PROCESS, "client", "export"], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "importing\n"
        process.stdin.close()
        assert process.wait(30) == 1


def test_a_part_that_does_not_exist_is_told() -> None:
    run = subprocess.run([*PROCESS, "spectator"], capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 1
    assert "there is no spectator to play" in run.stderr

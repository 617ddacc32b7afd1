"""The command line itself: which commands there are, and what a reader that leaves early makes of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

RUN = "import sys; from otel_mcp_resume.cli import main; sys.exit(main())"


def call(*arguments: str, stdout: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, *arguments]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.parametrize("command", [("doctor",), ("doctor", "--json")])
def test_a_reader_that_has_seen_enough_is_no_error(command: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        run = call(*command, stdout=writing)
    finally:
        os.close(writing)
    assert (run.returncode, run.stderr) == (0, "")


def test_the_help_names_every_command() -> None:
    run = call("--help", stdout=subprocess.PIPE)
    assert run.returncode == 0
    assert all(command in run.stdout for command in ("doctor", "demo", "assets"))


def test_an_unknown_command_is_a_wrong_call() -> None:
    run = call("docter", stdout=subprocess.PIPE)
    assert (run.returncode, run.stdout) == (2, "")
    assert "docter" in run.stderr

from __future__ import annotations

import pytest

from otel_mcp_resume.cli.demo.terminal import Terminal

ROWS = [("resume", "nothing", "client: proven", True), ("deploy", "nothing " * 12, "client: gap " * 12, False)]


def test_a_table_stays_within_the_width_and_is_plain_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(verbose=False)
    terminal.width = 80
    terminal.table(ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in "".join(lines)
    assert lines[0].split() == ["scene", "what", "the", "application", "noticed", "verdict"]
    assert lines[2] == f"{'resume':<8}{'nothing':<40}client: proven"
    assert sum(line.count("gap") for line in lines) == 12


def test_verdicts_are_coloured_on_a_terminal_unless_it_is_not_wanted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    Terminal(verbose=False).table(ROWS)
    assert "\x1b[32mclient: proven\x1b[0m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    Terminal(verbose=False).table(ROWS)
    assert "\x1b" not in capsys.readouterr().out


def test_details_are_for_those_who_ask(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal(verbose=False).detail("resume", "GET -> 200")
    assert capsys.readouterr().out == ""
    Terminal(verbose=True).detail("resume", "GET -> 200")
    assert "resume         | GET -> 200" in capsys.readouterr().out

"""Prometheus' own tool on the rules and on the tests of each alert."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.prom


def cases(directory: Path, name: str) -> list[dict[str, Any]]:
    files = [*directory.glob(f"tests/{name}.yml"), *directory.glob(f"tests/{name}.*.yml")]
    assert files, f"{name} has no tests"
    return [case for file in files for case in yaml.safe_load(file.read_text())["tests"]]


def test_the_rules_are_in_order(tool: Callable[[str], str], directory: Path, sources: tuple[str, ...]) -> None:
    run = subprocess.run(
        [tool("promtool"), "check", "rules", "--lint=all", "--lint-fatal", *sources],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_alert_does_what_its_tests_say(tool: Callable[[str], str], directory: Path, alert_name: str) -> None:
    files = [*directory.glob(f"tests/{alert_name}.yml"), *directory.glob(f"tests/{alert_name}.*.yml")]
    assert files
    passes(tool, directory, files)


def test_what_is_recorded_is_what_its_tests_say(tool: Callable[[str], str], directory: Path) -> None:
    passes(tool, directory, [directory / "tests" / "recording.yml"])


def passes(tool: Callable[[str], str], directory: Path, files: list[Path]) -> None:
    names = [str(file.relative_to(directory)) for file in files]
    run = subprocess.run(
        [tool("promtool"), "test", "rules", *names], cwd=directory, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_file_of_tests_belongs_to_a_rule(directory: Path, alerts: list[Any]) -> None:
    names = {alert.name for alert in alerts} | {"recording"}
    assert {file.name.split(".")[0] for file in directory.glob("tests/*")} == names


@pytest.mark.parametrize("situation", ["births and restarts", "no data", "boundar"])
def test_every_alert_is_tested_in(situation: str, directory: Path, alert_name: str) -> None:
    """Series that are born at 0 and at 1, counters that restart, silence, and the value just short of firing."""
    files = [*directory.glob(f"tests/{alert_name}.yml"), *directory.glob(f"tests/{alert_name}.*.yml")]
    if situation == "births and restarts" and alert_name in {"McpResumeMetricsGone", "McpResumeNoData"}:
        situation = "birth"  # about series that come and go, all through
    assert any(situation in file.read_text() for file in files)


def test_every_alert_fires_and_recovers_and_is_quoted_in_full(directory: Path, alert: Any) -> None:
    fired = recovered = False
    for case in cases(directory, alert.name):
        for earlier, later in zip(case.get("alert_rule_test", []), case.get("alert_rule_test", [])[1:], strict=False):
            before, after = (expected(check, alert.severity) for check in (earlier, later))
            fired |= bool(after - before)
            recovered |= bool(before - after)
        for check in case.get("alert_rule_test", []):
            for one in check["exp_alerts"]:
                assert set(one["exp_annotations"]) == set(alert.raw["annotations"])
    assert fired
    assert recovered


def expected(check: dict[str, Any], severity: str) -> set[str]:
    """What fires at that time, by its labels."""
    return {
        str(sorted(one["exp_labels"].items()))
        for one in check["exp_alerts"]
        if one["exp_labels"]["severity"] == severity
    }

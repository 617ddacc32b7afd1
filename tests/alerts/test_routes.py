"""Routes and inhibitions of the example configuration, as far as it can be told without running it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml


def config(directory: Path) -> Any:
    return yaml.safe_load((directory / "alertmanager.example.yml").read_text())


def meets(labels: dict[str, str], matchers: list[str]) -> bool:
    for matcher in matchers:
        found = re.fullmatch(r'(\w+)(=~?)"([^"]*)"', matcher)
        assert found, matcher
        name, operator, value = found.groups()
        if not re.fullmatch(value if operator == "=~" else re.escape(value), labels.get(name, "")):
            return False
    return True


@pytest.mark.prom
def test_the_tool_takes_the_configuration(tool: Callable[[str], str], directory: Path) -> None:
    run = subprocess.run(
        [tool("amtool"), "check-config", "alertmanager.example.yml"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.prom
def test_every_alert_goes_where_its_severity_says(tool: Callable[[str], str], directory: Path, alert: Any) -> None:
    where = {"critical": "pager", "warning": "tickets", "info": "chat"}[alert.severity]
    if alert.name == "McpResumeCrossSessionDelivery":
        where = "security"
    command = [tool("amtool"), "config", "routes", "test", "--config.file=alertmanager.example.yml"]
    command += [f"--verify.receivers={where}", f"alertname={alert.name}", f"severity={alert.severity}"]
    run = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_whoever_handles_disclosures_is_not_alone(directory: Path) -> None:
    urls = {one["name"]: {hook["url"] for hook in one["webhook_configs"]} for one in config(directory)["receivers"]}
    assert urls["pager"] < urls["security"]


def test_an_inhibition_compares_only_labels_that_both_sides_carry(
    directory: Path, alerts: list[Any], labels_of: Any
) -> None:
    """What neither has counts as equal, and would silence more than was meant."""
    for rule in config(directory)["inhibit_rules"]:
        for side in ("source_matchers", "target_matchers"):
            fixed = {m.split("=")[0] for m in rule[side]}
            touched = [a for a in alerts if meets(fully(a, labels_of, rule[side]), rule[side])]
            assert touched, rule[side]
            for alert in touched:
                assert set(rule["equal"]) <= {"alertname", *labels_of(alert)}
                assert fixed <= {"alertname", "severity", *labels_of(alert)}
        named = {name for m in rule["source_matchers"] + rule["target_matchers"] for name in re.findall(r"McpR\w+", m)}
        assert named <= {alert.name for alert in alerts}


def fully(alert: Any, labels_of: Any, matchers: list[str]) -> dict[str, str]:
    """The labels of an alert, where a matcher asks for another one with the value that it asks for."""
    asked = dict(re.findall(r'(\w+)="([^"]*)"', " ".join(matchers)))
    labels = {name: asked.get(name, "") for name in labels_of(alert)}
    return {**labels, "alertname": alert.name, "severity": alert.severity}


def test_a_page_never_silences_a_page_of_another_service(directory: Path) -> None:
    assert all("job" in rule["equal"] for rule in config(directory)["inhibit_rules"])


def test_every_alert_of_two_severities_is_paired(directory: Path, alerts: list[Any]) -> None:
    severities: dict[str, set[str]] = {}
    for alert in alerts:
        severities.setdefault(alert.name, set()).add(alert.severity)
    for name in [name for name, found in severities.items() if len(found) > 1]:
        assert any(
            meets({"alertname": name, "severity": "critical"}, rule["source_matchers"])
            and meets({"alertname": name, "severity": "warning"}, rule["target_matchers"])
            for rule in config(directory)["inhibit_rules"]
        )

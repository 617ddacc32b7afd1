"""Names, labels and annotations: what a person reads at night, and what routing relies on."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

SEVERITIES = {"critical", "warning", "info"}
DASHBOARDS = {"mcp-resume-continuity", "mcp-resume-migration", "mcp-resume-server"}
SENTENCE = re.compile(r"[A-Z][^.!?{}]*\.")
"""One sentence, nothing filled in."""


def test_names_are_camel_case_with_one_prefix(alert: Any) -> None:
    assert re.fullmatch(r"McpResume([A-Z][a-z]+)+", alert.name)


def test_a_name_is_used_once_per_severity(alerts: list[Any]) -> None:
    uses = Counter((alert.name, alert.severity) for alert in alerts)
    assert {use for use, times in uses.items() if times > 1} == set()


def test_every_label_is_a_severity(alert: Any) -> None:
    """A label that changes with the value would make a new alert of every evaluation."""
    assert set(alert.raw["labels"]) == {"severity"}
    assert alert.severity in SEVERITIES


def test_the_annotations_are_those_that_every_alert_has(alert: Any) -> None:
    assert set(alert.raw["annotations"]) == {"summary", "description", "runbook_url", "dashboard_url"}


def test_the_summary_is_one_sentence_that_never_changes(alert: Any) -> None:
    assert SENTENCE.fullmatch(alert.raw["annotations"]["summary"])


def test_the_description_has_the_number_in_a_form_for_people(alert: Any) -> None:
    description = alert.raw["annotations"]["description"]
    assert description.endswith(".")
    assert description[0].isupper() or description.startswith("{{")
    if alert.name == "McpResumeNoData":  # there is neither a number nor a label where there is nothing
        assert "{{" not in description
        return
    assert re.search(r'{{ (printf "%\.0f"|humanize|humanizePercentage|humanizeDuration) \$value }}', description)
    assert "{{ $labels.job }}" in description


def test_the_description_names_only_labels_that_the_alert_has(alert: Any, labels_of: Any) -> None:
    used = set(re.findall(r"\$labels\.(\w+)", "".join(alert.raw["annotations"].values())))
    assert used <= labels_of(alert)


def test_the_runbook_is_there(alert: Any, directory: Path, generate: Any) -> None:
    assert alert.raw["annotations"]["runbook_url"] == f"{generate.RUNBOOKS}/{alert.name}.md"
    assert (directory / "runbooks" / f"{alert.name}.md").is_file()


def test_the_dashboard_is_one_of_ours(alert: Any, generate: Any) -> None:
    url = alert.raw["annotations"]["dashboard_url"]
    found = re.fullmatch(re.escape(generate.GRAFANA) + r"/d/([\w-]+)(\?var-job={{ \$labels\.job \| urlquery }})?", url)
    assert found
    assert found[1] in DASHBOARDS
    assert bool(found[2]) == (alert.name != "McpResumeNoData")


def test_the_dashboard_exists_where_dashboards_are(alert: Any, directory: Path) -> None:
    """By its uid, which is all that a link knows of it."""
    boards = list((directory.parent / "dashboards").rglob("mcp-resume-*.json"))
    uid = re.search(r"/d/([\w-]+)", alert.raw["annotations"]["dashboard_url"])
    assert uid
    assert any(f'"uid": "{uid[1]}"' in board.read_text() for board in boards)


def test_the_overview_names_every_alert_and_its_severities(alerts: list[Any], directory: Path) -> None:
    rows = re.findall(
        r"^\| (?:\[(\w+)\]\(runbooks/\1\.md\))? ?\| ([\w, ]+) \|", (directory / "README.md").read_text(), re.MULTILINE
    )
    listed: set[tuple[str, str]] = set()
    name = ""
    for link, severities in rows:
        name = link or name
        listed |= {(name, severity) for severity in severities.split(", ") if severity in SEVERITIES}
    assert listed == {(alert.name, alert.severity) for alert in alerts}

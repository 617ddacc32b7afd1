"""The Kubernetes and Grafana forms: the same bytes from the same source, and the same alerts in each."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_generating_again_gives_the_same_bytes(directory: Path, generate: Any) -> None:
    for name, text in generate.written(generate.Options()).items():
        assert (directory / name).read_text() == text


def test_the_script_says_what_is_out_of_date(directory: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(directory, tmp_path / "alerts")

    def check() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(copy / "generate.py"), "--check"], capture_output=True, text=True, check=False
        )

    assert check().returncode == 0
    with (copy / "mcp-resume.alerts.yml").open("a") as source:
        source.write("      - alert: McpResumeNew\n        expr: vector(1) == 1\n        labels: {severity: info}\n")
        source.write("        annotations: {}\n")
    run = check()
    assert run.returncode == 1
    assert "grafana/mcp-resume.yml is out of date" in run.stderr
    assert "kubernetes/mcp-resume.yml is out of date" in run.stderr
    assert "slo" not in run.stderr


def test_the_kubernetes_objects_hold_the_rules_unchanged(directory: Path, sources: tuple[str, ...]) -> None:
    objects = [load(directory / "kubernetes" / name) for name in ("mcp-resume.yml", "mcp-resume-slo.yml")]
    for one in objects:
        assert one["apiVersion"] == "monitoring.coreos.com/v1"
        assert one["kind"] == "PrometheusRule"
        assert set(one) == {"apiVersion", "kind", "metadata", "spec"}
    groups = [group for one in objects for group in one["spec"]["groups"]]
    assert groups == [group for source in sources for group in load(directory / source)["groups"]]


def grafana_rules(directory: Path) -> list[dict[str, Any]]:
    files = [load(directory / "grafana" / name) for name in ("mcp-resume.yml", "mcp-resume-slo.yml")]
    assert all(file["apiVersion"] == 1 for file in files)
    return [rule for file in files for group in file["groups"] for rule in group["rules"]]


def test_grafana_has_every_alert_and_no_other(directory: Path, alerts: list[Any]) -> None:
    assert [rule["uid"] for rule in grafana_rules(directory)] == [f"{a.name}-{a.severity}" for a in alerts]


def test_grafana_can_tell_its_rules_apart(directory: Path) -> None:
    rules = grafana_rules(directory)
    assert len({rule["title"] for rule in rules}) == len(rules)
    assert len({rule["uid"] for rule in rules}) == len(rules)
    assert all(len(rule["uid"]) <= 40 for rule in rules)  # Grafana's limit


def test_grafana_asks_the_same(directory: Path, alert: Any, recorded: dict[str, Any]) -> None:
    """The expression is the source's, with recorded series spelled out; any number it returns is an alert."""
    rule = next(one for one in grafana_rules(directory) if one["uid"] == f"{alert.name}-{alert.severity}")
    query, number, threshold = rule["data"]
    assert promql.parse(query["model"]["expr"]).prettify() == spelled_out(alert.parsed, recorded).prettify()
    assert query["model"]["instant"] is True
    assert number["model"]["expression"] == "is_number($query) || is_inf($query)"
    assert threshold["model"]["expression"] == number["refId"]
    assert threshold["model"]["conditions"] == [{"evaluator": {"type": "gt", "params": [0]}}]
    assert rule["condition"] == threshold["refId"]
    assert (rule["noDataState"], rule["execErrState"]) == ("OK", "Error")
    assert rule["for"] == alert.raw.get("for", "0s")
    assert rule.get("keepFiringFor") == alert.raw.get("keep_firing_for")
    assert rule["labels"] == alert.raw["labels"]
    assert back(rule["annotations"]) == alert.raw["annotations"]


def spelled_out(expr: promql.Expr, recorded: dict[str, Any]) -> promql.Expr:
    """By way of the syntax tree, where the generator goes by way of the text."""

    def visit(node: promql.Expr) -> promql.Expr | None:
        if isinstance(node, promql.VectorSelector) and node.name in recorded:
            inner = spelled_out(recorded[node.name].parsed, recorded)
            return promql.parse(f"({inner.prettify()})")
        return None

    return promql.transform(expr, None, visit)


def back(annotations: dict[str, str]) -> dict[str, str]:
    assert not any("$value " in text for text in annotations.values())
    return {name: text.replace("$values.query.Value", "$value") for name, text in annotations.items()}


@pytest.mark.prom
def test_what_grafana_asks_passes_the_tests_of_the_source(
    tool: Callable[[str], str], directory: Path, tmp_path: Path, alert_name: str, sources: tuple[str, ...]
) -> None:
    """Written back as Prometheus rules, without a single recording rule, it fires and stays silent in the same way."""
    rules = [
        {
            "alert": alert_name,
            "expr": rule["data"][0]["model"]["expr"],
            "for": rule["for"],
            **({"keep_firing_for": rule["keepFiringFor"]} if "keepFiringFor" in rule else {}),
            "labels": rule["labels"],
            "annotations": back(rule["annotations"]),
        }
        for rule in grafana_rules(directory)
        if rule["uid"].startswith(f"{alert_name}-")
    ]
    for source in sources:  # where the tests look for them; once is enough
        (tmp_path / source).write_text("groups: []\n")
    (tmp_path / "tests").mkdir()
    files = [*directory.glob(f"tests/{alert_name}.yml"), *directory.glob(f"tests/{alert_name}.*.yml")]
    for file in files:
        content = load(file)
        content.pop("group_eval_order", None)  # of groups that are not here
        (tmp_path / "tests" / file.name).write_text(yaml.safe_dump(content))
    last = content["rule_files"][-1].removeprefix("../")
    (tmp_path / last).write_text(yaml.safe_dump({"groups": [{"name": "grafana", "rules": rules}]}))
    command = [tool("promtool"), "test", "rules", *(f"tests/{file.name}" for file in files)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.prom
def test_other_addresses_and_labels(tool: Callable[[str], str], generate: Any, tmp_path: Path) -> None:
    arguments = ["--out", str(tmp_path), "--grafana", "https://grafana.example.com/", "--data-source", "main"]
    arguments += ["--runbooks", "https://wiki.example.com/mcp", "--keep", "cluster", "--keep", "namespace"]
    assert generate.main(arguments) == 0
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert len(files) == 7
    text = "".join(path.read_text() for path in files)
    assert generate.GRAFANA not in text
    assert generate.RUNBOOKS not in text
    assert "https://grafana.example.com/d/mcp-resume-server" in text
    assert "https://wiki.example.com/mcp/McpResumeSilentGap.md" in text
    assert "datasourceUid: main" in text
    assert "by (job)" not in text
    assert "by (job, cluster, namespace)" in text
    run = subprocess.run(
        [tool("promtool"), "check", "rules", "--lint=all", "--lint-fatal", *map(str, tmp_path.glob("*.yml"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_files_here_keep_the_defaults(generate: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        generate.main(["--grafana", "https://grafana.example.com"])
    assert "--out" in capsys.readouterr().err

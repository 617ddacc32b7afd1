"""Writes the rules in the forms that others want: a Kubernetes PrometheusRule and Grafana-managed alerts.

The Prometheus files beside this one (`mcp-resume.*.yml`) are the one source. `python alerts/generate.py` writes
`kubernetes/` and `grafana/` from them; `--check` only says whether they are up to date (exit 1 if not). With `--out`
everything, the Prometheus files included, goes to another directory, with your own addresses and labels in it:

    python alerts/generate.py --out DIR --grafana https://grafana.example.com --keep cluster --keep namespace
"""

# ruff: noqa: INP001 - a script beside what it writes, no package
from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
SOURCES = ("mcp-resume.rules.yml", "mcp-resume.alerts.yml", "mcp-resume.slo.yml")

RUNBOOKS = "https://github.com/otel-mcp-resume/otel-mcp-resume/blob/main/alerts/runbooks"
"""What every `runbook_url` of the source begins with."""
GRAFANA = "http://localhost:3000"
"""What every `dashboard_url` of the source begins with."""
DATA_SOURCE = "prometheus"
"""The uid of the Prometheus data source in Grafana, as `dashboards/` provisions it."""

_NOTICE = "# Written by alerts/generate.py from mcp-resume.*.yml. Change those, not this.\n"
_RECORDED = re.compile(r"\b\w+:\w+:\w+\b")

Rule = dict[str, Any]
Group = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """What may differ from one place of use to the next."""

    runbooks: str = RUNBOOKS
    grafana: str = GRAFANA
    data_source: str = DATA_SOURCE
    keep: tuple[str, ...] = ()
    """Labels that every sum keeps beside `job`, such as `cluster`."""

    def applied(self, text: str) -> str:
        """`text` of a source file with these options instead of the defaults."""
        labels = "".join(f", {label}" for label in self.keep)
        return (
            text.replace(RUNBOOKS, self.runbooks.rstrip("/"))
            .replace(GRAFANA, self.grafana.rstrip("/"))
            .replace("by (job", f"by (job{labels}")
        )


def read(options: Options) -> dict[str, str]:
    """The source files, by name. Raises `OSError`."""
    return {name: options.applied((HERE / name).read_text(encoding="utf-8")) for name in SOURCES}


def written(options: Options) -> dict[str, str]:
    """Every generated file, by its path below `alerts/`."""
    groups = {name: yaml.safe_load(text)["groups"] for name, text in read(options).items()}
    rules = [*groups["mcp-resume.rules.yml"], *groups["mcp-resume.alerts.yml"]]
    objective = groups["mcp-resume.slo.yml"]
    recorded = {rule["record"]: rule["expr"] for group in [*rules, *objective] for rule in recording(group)}
    return {
        "kubernetes/mcp-resume.yml": _dump(prometheus_rule("mcp-resume", rules)),
        "kubernetes/mcp-resume-slo.yml": _dump(prometheus_rule("mcp-resume-slo", objective)),
        "grafana/mcp-resume.yml": _dump(grafana_file(rules, recorded, options)),
        "grafana/mcp-resume-slo.yml": _dump(grafana_file(objective, recorded, options)),
    }


def prometheus_rule(name: str, groups: list[Group]) -> dict[str, Any]:
    """The object that the Prometheus operator reads. Its groups are those of Prometheus, unchanged."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "otel-mcp-resume", "role": "alert-rules"}},
        "spec": {"groups": groups},
    }


def grafana_file(groups: list[Group], recorded: dict[str, str], options: Options) -> dict[str, Any]:
    """A provisioning file of Grafana-managed alerts. Recorded series are spelled out, so nothing else is needed."""
    titles: set[str] = set()
    return {
        "apiVersion": 1,
        "groups": [
            {
                "orgId": 1,
                "name": group["name"],
                "folder": "MCP resume",
                "interval": "1m",
                "rules": [_grafana_rule(rule, recorded, options, titles) for rule in alerting(group)],
            }
            for group in groups
            if any(alerting(group))
        ],
    }


def _grafana_rule(rule: Rule, recorded: dict[str, str], options: Options, titles: set[str]) -> dict[str, Any]:
    severity = rule["labels"]["severity"]
    title = rule["alert"] if rule["alert"] not in titles else f"{rule['alert']} ({severity})"
    titles.add(title)  # Grafana wants each only once in a folder
    entry: dict[str, Any] = {
        "uid": f"{rule['alert']}-{severity}",
        "title": title,
        "condition": "threshold",
        "data": _grafana_queries(spelled_out(rule["expr"], recorded), options.data_source),
        "noDataState": "OK",  # a comparison that nothing meets returns nothing: that is the healthy state
        "execErrState": "Error",
        "for": rule.get("for", "0s"),
        "missing_series_evals_to_resolve": 1,  # as in Prometheus: what is gone is over
        "annotations": {
            name: text.replace("$value", "$values.query.Value") for name, text in rule["annotations"].items()
        },
        "labels": dict(rule["labels"]),
        "isPaused": False,
    }
    if "keep_firing_for" in rule:
        entry["keepFiringFor"] = rule["keep_firing_for"]
    return entry


def _grafana_queries(expr: str, data_source: str) -> list[dict[str, Any]]:
    """The query, and what makes an alert of any number that it returns. Grafana's own import does it in this way."""
    return [
        {
            "refId": "query",
            "relativeTimeRange": {"from": 600, "to": 0},
            "datasourceUid": data_source,
            "model": {
                "refId": "query",
                "datasource": {"type": "prometheus", "uid": data_source},
                "expr": expr,
                "instant": True,
                "range": False,
            },
        },
        _expression("any_number", {"type": "math", "expression": "is_number($query) || is_inf($query)"}),
        _expression(
            "threshold",
            {
                "type": "threshold",
                "expression": "any_number",
                "conditions": [{"evaluator": {"type": "gt", "params": [0]}}],
            },
        ),
    ]


def _expression(name: str, model: dict[str, Any]) -> dict[str, Any]:
    return {
        "refId": name,
        "relativeTimeRange": {"from": 0, "to": 0},
        "datasourceUid": "__expr__",
        "model": {"refId": name, "datasource": {"type": "__expr__", "uid": "__expr__"}, **model},
    }


def spelled_out(expr: str, recorded: dict[str, str]) -> str:
    """`expr` with every recorded series replaced by what records it."""

    def definition(name: re.Match[str]) -> str:
        line = expr[expr.rfind("\n", 0, name.start()) + 1 : name.start()]
        indent = " " * (len(line) - len(line.lstrip()))
        inner = spelled_out(recorded[name[0]], recorded).strip()
        return "(\n" + textwrap.indent(inner, indent + "  ") + "\n" + indent + ")"

    return _RECORDED.sub(definition, expr)


def alerting(group: Group) -> list[Rule]:
    """The alerts of a group."""
    return [rule for rule in group["rules"] if "alert" in rule]


def recording(group: Group) -> list[Rule]:
    """The recording rules of a group."""
    return [rule for rule in group["rules"] if "record" in rule]


class _Dumper(yaml.SafeDumper):
    """Block style for what has lines of its own, and no references to what was written above."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the base's signature
        return True


def _text(_: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _dump(content: dict[str, Any]) -> str:
    return _NOTICE + yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=1_000_000, allow_unicode=True)


def main(arguments: list[str]) -> int:
    """The command line; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 if a file is out of date")
    parser.add_argument("--out", type=Path, help="write all forms to this directory")
    parser.add_argument("--runbooks", default=RUNBOOKS, help="where the runbooks are served")
    parser.add_argument("--grafana", default=GRAFANA, help="where Grafana is served")
    parser.add_argument("--data-source", default=DATA_SOURCE, help="uid of Grafana's Prometheus data source")
    parser.add_argument("--keep", action="append", default=[], metavar="LABEL", help="a label to keep beside job")
    given = parser.parse_args(arguments)
    options = Options(given.runbooks, given.grafana, given.data_source, tuple(given.keep))
    if options != Options() and given.out is None:
        parser.error("other addresses or labels need --out: the files here keep the defaults")
    files = written(options) if given.out is None else {**read(options), **written(options)}
    return _for_each(files, given.out or HERE, _stale if given.check else _write)


def _for_each(files: dict[str, str], directory: Path, act: Callable[[Path, str], bool]) -> int:
    return min(1, sum(act(directory / name, text) for name, text in files.items()))


def _stale(path: Path, text: str) -> bool:
    stale = not path.exists() or path.read_text(encoding="utf-8") != text
    if stale:
        print(f"{path} is out of date: run python alerts/generate.py", file=sys.stderr)  # noqa: T201 - a script
    return stale


def _write(path: Path, text: str) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

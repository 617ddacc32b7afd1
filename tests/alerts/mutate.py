"""Changes every threshold, window, delay, matcher and operator of the rules, one at a time, and expects a test to fail.

`python tests/alerts/mutate.py [NAME ...]` mutates the rules of these names, or all of them. It exits with 1 if a
change goes unnoticed, and lists each that does. Needs `promtool` and promql-parser.
"""

from __future__ import annotations

import argparse
import copy
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import promql_parser
import yaml

ALERTS = Path(__file__).resolve().parents[2] / "alerts"
SOURCES = ("mcp-resume.rules.yml", "mcp-resume.alerts.yml", "mcp-resume.slo.yml")

Rule = dict[str, Any]
Change = tuple[str, Rule]
"""What was changed, and the rule after it."""

_NUMBER = re.compile(r"(?<![\w.\[\"])\d+(?:\.\d+)?(?![\w.\]\"])")
_WINDOW = re.compile(r"(?<=\[)\w+(?=\])")
_OFFSET = re.compile(r"(?<=offset )\w+")
_COMPARISON = re.compile(r"(?<![=!~<>])(?:[<>]=?|[=!]=)(?![~=])")
_MATCHER = re.compile(r"""(\w+)(=~|!~|=|!=)"([^"]*)",?\s*""")
_BY = re.compile(r"\bby \(([^)]*)\)")
_OPPOSITES = {">": (">=", "<"), ">=": (">", "<="), "<": ("<=", ">"), "<=": ("<", ">="), "==": ("!=",), "!=": ("==",)}


def _is_known(alerts: Path, name: str) -> bool:
    texts = [(alerts / source).read_text() for source in SOURCES]
    return any(f"record: {name}\n" in text or f"alert: {name}\n" in text for text in texts)


def changes(rule: Rule) -> Iterator[Change]:
    """Every way to spoil one rule a little."""
    for key in ("for", "keep_firing_for"):
        if key in rule:
            for factor in (0.5, 2):
                yield f"{key} times {factor}", {**rule, key: _scaled(rule[key], factor)}
            yield f"without {key}", {name: value for name, value in rule.items() if name != key}
        elif "alert" in rule:
            yield f"{key} of 30m", {**rule, key: "30m"}
    for what, expr in _expressions(rule["expr"]):
        promql_parser.parse(expr)  # a change that is no PromQL any more would be noticed for nothing
        yield what, {**rule, "expr": expr}


def _expressions(expr: str) -> Iterator[tuple[str, str]]:
    yield from _each(_NUMBER, expr, _other_numbers)
    yield from _each(_WINDOW, expr, lambda found: [_scaled(found[0], 0.5), _scaled(found[0], 2)])
    yield from _each(_OFFSET, expr, lambda found: [_scaled(found[0], 0.5), _scaled(found[0], 2)])
    yield from _each(_COMPARISON, expr, lambda found: _OPPOSITES[found[0]])
    yield from _each(_MATCHER, expr, _other_matchers)
    yield from _each(_BY, expr, _fewer_labels)
    yield from _without_operands(expr)


def _each(
    pattern: re.Pattern[str], expr: str, others: Callable[[re.Match[str]], list[str] | tuple[str, ...]]
) -> Iterator[tuple[str, str]]:
    for found in pattern.finditer(expr):
        if pattern is _COMPARISON and expr.count("{", 0, found.start()) != expr.count("}", 0, found.start()):
            continue  # inside of braces it belongs to a matcher
        for other in others(found):
            yield (
                f"{found[0].strip()} becomes {other.strip() or 'nothing'}, at {found.start()}",
                expr[: found.start()] + other + expr[found.end() :],
            )


def _other_numbers(found: re.Match[str]) -> list[str]:
    value = float(found[0])
    return [f"{value * 1.1:g}", f"{value * 0.9:g}"] if value % 1 else [f"{value + 1:g}", f"{value - 1:g}"]


def _other_matchers(found: re.Match[str]) -> list[str]:
    name, operator, value = found.groups()
    rest = found[0][found[0].rindex('"') + 1 :]
    fewer = value.split("|") if "~" in operator else []
    kept = ["|".join(other for other in fewer if other != one) for one in fewer]
    return ["", *(f'{name}{operator}"{alternatives}"{rest}' for alternatives in kept)]


def _fewer_labels(found: re.Match[str]) -> list[str]:
    labels = found[1].split(", ")
    return [f"by ({', '.join(other for other in labels if other != one)})" for one in labels]


def _without_operands(expr: str) -> Iterator[tuple[str, str]]:
    parsed = promql_parser.parse(expr)
    for index in range(len(_set_operations(parsed))):
        for side in ("lhs", "rhs"):
            yield f"only the {side} of set operation {index}", _one_operand(parsed, index, side).prettify()


def _set_operations(parsed: promql_parser.Expr) -> list[str]:
    found: list[str] = []

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.BinaryExpr) and str(node.op) in {"and", "or", "unless"}:
            found.append(str(node.op))

    promql_parser.walk(parsed, visit)
    return found


def _one_operand(parsed: promql_parser.Expr, index: int, side: str) -> promql_parser.Expr:
    seen = -1

    def visit(node: promql_parser.Expr) -> promql_parser.Expr | None:
        nonlocal seen
        if isinstance(node, promql_parser.BinaryExpr) and str(node.op) in {"and", "or", "unless"}:
            seen += 1
            if seen == index:
                operand: promql_parser.Expr = getattr(node, side)
                return operand
        return None

    return promql_parser.transform(parsed, None, visit)


def _scaled(duration: str, factor: float) -> str:
    seconds = promql_parser.parse_duration(duration).total_seconds() * factor
    return f"{seconds:.0f}s"


_ENVIRON = {**os.environ, "GOGC": "off"}
"""It lives for a second: what it collects is not worth its collection, a fifth of its time."""


@dataclass(frozen=True)
class Job:
    """One change of one rule, and the whole file after it."""

    source: str
    name: str
    what: str
    content: dict[str, Any]


def tests_of(alerts: Path, name: str) -> list[Path]:
    """The files with the tests of an alert; for a recording rule, the one with the values that it records."""
    if ":" in name:
        return [alerts / "tests" / "recording.yml"]
    return [*sorted(alerts.glob(f"tests/{name}.yml")), *sorted(alerts.glob(f"tests/{name}.*.yml"))]


def unnoticed(alerts: Path, job: Job) -> str | None:
    """Runs the tests of the rule against the changed file; a line for the report if none of them fails."""
    with tempfile.TemporaryDirectory() as directory:
        room = Path(directory)
        for other in SOURCES:
            content = job.content if other == job.source else _only(_load(alerts / other), job.name)
            (room / other).write_text(yaml.safe_dump(content, sort_keys=False))
        (room / "tests").mkdir()
        for test in tests_of(alerts, job.name):
            shutil.copy(test, room / "tests")
            command = ["promtool", "test", "rules", f"tests/{test.name}"]
            run = subprocess.run(command, cwd=room, env=_ENVIRON, capture_output=True, check=False)
            if run.returncode != 0:
                return None
    return f"{job.source}: {job.name}: {job.what}"


def jobs(alerts: Path, names: list[str]) -> Iterator[Job]:
    """Every change of every rule called for, or of all rules."""
    for source in SOURCES:
        content = _load(alerts / source)
        for group, rules in enumerate(content["groups"]):
            for index, rule in enumerate(rules["rules"]):
                name = rule.get("alert") or rule["record"]
                if names and name not in names:
                    continue
                for what, changed in changes(rule):
                    file = _only(copy.deepcopy(content), name)
                    file["groups"][group]["rules"] = [
                        changed if other is rule else copy.deepcopy(other)
                        for other in rules["rules"]
                        if other is rule or _belongs(other, name)
                    ]
                    severity = rule.get("labels", {}).get("severity", "recorded")
                    yield Job(source, name, f"{severity} {index}: {what}", file)


def _load(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text())
    return content


def _belongs(rule: Rule, name: str) -> bool:
    return "record" in rule or rule["alert"] == name


def _only(content: dict[str, Any], name: str) -> dict[str, Any]:
    """Other alerts are no part of the test, and evaluating them is most of its time."""
    for group in content["groups"]:
        group["rules"] = [rule for rule in group["rules"] if _belongs(rule, name)]
    return content


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="alerts or recording rules; all of them if none is named")
    parser.add_argument("--alerts", type=Path, default=ALERTS, help="the directory with the rules and their tests")
    parser.add_argument("--workers", type=int, default=2, help="how many promtool processes run at a time")
    given = parser.parse_args(arguments)
    if shutil.which("promtool") is None:
        print("promtool is missing: apt-get install prometheus", file=sys.stderr)
        return 2
    work = list(jobs(given.alerts, given.names))
    if not work and given.names and all(_is_known(given.alerts, name) for name in given.names):
        print("0 changes: a quotient of other rules has nothing to spoil")
        return 0
    if not work:
        print("no rule of that name", file=sys.stderr)
        return 2
    for job in {job.name: job for job in work}.values():
        if unnoticed(given.alerts, replace(job, content=_only(_load(given.alerts / job.source), job.name))) is None:
            print(f"the tests of {job.name} fail without any change", file=sys.stderr)
            return 2
    with ThreadPoolExecutor(given.workers) as pool:
        survivors = [line for line in pool.map(partial(unnoticed, given.alerts), work) if line is not None]
    for line in survivors:
        print(line)
    print(f"{len(work)} changes, {len(work) - len(survivors)} noticed, {len(survivors)} not")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

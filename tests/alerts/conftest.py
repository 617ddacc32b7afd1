"""The rules as the tests see them, and the tools that own their formats.

Tests that need one of those tools are marked `prom`: without it they fail, unless `-m "not prom"` leaves them out.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import promql_parser
import pytest
import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ALERTS = ROOT / "alerts"
SOURCES = ("mcp-resume.rules.yml", "mcp-resume.alerts.yml", "mcp-resume.slo.yml")
TOOLS = {
    "promtool": ("promtool", "prometheus"),
    "amtool": ("amtool", "prometheus-alertmanager"),
    "prometheus-alertmanager": ("alertmanager", "prometheus-alertmanager"),
}
"""What else a tool may be called, and its Debian package."""

if importlib.util.find_spec("otel_mcp_resume") is None:
    sys.path.append(str(ROOT))  # a clean clone; what is installed goes first


@dataclass(frozen=True)
class Rule:
    """One rule of a source file."""

    file: str
    group: str
    raw: dict[str, Any] = field(hash=False)

    @property
    def name(self) -> str:
        return str(self.raw.get("alert") or self.raw["record"])

    @property
    def severity(self) -> str:
        return str(self.raw["labels"]["severity"])

    @property
    def expr(self) -> str:
        return str(self.raw["expr"])

    @property
    def parsed(self) -> promql_parser.Expr:
        return promql_parser.parse(self.expr)

    def nodes(self) -> list[promql_parser.Expr]:
        """Every part of the expression, the whole first."""
        found: list[promql_parser.Expr] = []
        promql_parser.walk(self.parsed, found.append)
        return found


def _read() -> list[Rule]:
    return [
        Rule(file, group["name"], raw)
        for file in SOURCES
        for group in yaml.safe_load((ALERTS / file).read_text())["groups"]
        for raw in group["rules"]
    ]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "prom: needs promtool, amtool or Alertmanager (Debian: prometheus*)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """None of this depends on the version of mcp, so one row of the matrix for each line is enough."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker("full")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`alert`, `record` and `rule` are one rule each, `alert_name` is one name of an alert."""
    rules = _read()
    alerts = [rule for rule in rules if "alert" in rule.raw]
    records = [rule for rule in rules if "record" in rule.raw]
    for argument, values in (("rule", rules), ("alert", alerts), ("record", records)):
        if argument in metafunc.fixturenames:
            ids = [f"{one.name}-{one.severity}" if "alert" in one.raw else one.name for one in values]
            metafunc.parametrize(argument, values, ids=ids)
    if "alert_name" in metafunc.fixturenames:
        metafunc.parametrize("alert_name", sorted({alert.name for alert in alerts}))
    if "rule_name" in metafunc.fixturenames:
        metafunc.parametrize("rule_name", list(dict.fromkeys(rule.name for rule in rules)))


@pytest.fixture(scope="session")
def alerts() -> list[Rule]:
    return [rule for rule in _read() if "alert" in rule.raw]


@pytest.fixture(scope="session")
def recorded() -> dict[str, Rule]:
    return {rule.name: rule for rule in _read() if "record" in rule.raw}


@pytest.fixture(scope="session")
def labels_of(recorded: dict[str, Rule]) -> Callable[..., set[str]]:
    """The labels that the result of a rule, or of a part of it, has."""

    def find(rule: Rule, part: promql_parser.Expr | None = None) -> set[str]:
        expr = part or rule.parsed
        if isinstance(expr, promql_parser.AggregateExpr):
            return set(expr.modifier.labels) if expr.modifier else set()
        if isinstance(expr, promql_parser.ParenExpr):
            return find(rule, expr.expr)
        if isinstance(expr, promql_parser.BinaryExpr):
            return find(rule, expr.lhs)
        if isinstance(expr, promql_parser.VectorSelector):
            return find(recorded[expr.name or ""])
        assert isinstance(expr, promql_parser.Call)
        assert expr.func.name == "absent", f"{expr.func.name} has labels that this does not know"
        return set()

    return find


@pytest.fixture(scope="session")
def directory() -> Path:
    return ALERTS


@pytest.fixture(scope="session")
def sources() -> tuple[str, ...]:
    return SOURCES


@pytest.fixture(scope="session")
def tool() -> Callable[[str], str]:
    """The path of a tool. A machine without it fails the test: silence would look like success."""

    def find(name: str) -> str:
        other, package = TOOLS[name]
        path = shutil.which(name) or shutil.which(other)
        if path is None:
            pytest.fail(f'{name} is missing: apt-get install {package}, or leave these tests out with -m "not prom"')
        return path

    return find


@pytest.fixture(scope="session")
def generate() -> Iterator[ModuleType]:
    """`alerts/generate.py`, which is a script and no part of the package."""
    name = "otel_mcp_resume_alerts_generate"
    spec = importlib.util.spec_from_file_location(name, ALERTS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[name]

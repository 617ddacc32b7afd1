"""What each query may say: only our names, narrowed by the variables, and never a hole where there is a 0."""

from __future__ import annotations

import re
from typing import Any

import promql_parser as promql

from otel_mcp_resume.report.names import LABEL_VALUES, METRICS

EXPORTED = {metric.name: metric for metric in METRICS}
VARIABLES = ("job", "instance", "side", "generation")
WINDOWS = {"rate": {"$__rate_interval"}, "increase": {"$__rate_interval", "$__range"}}


def parsed(query: Any) -> promql.Expr:
    """The variables of durations are no PromQL, those inside of quotes are text."""
    return promql.parse(query.expr.replace("$__rate_interval", "5m").replace("$__range", "1h"))


def nodes(query: Any) -> list[promql.Expr]:
    found: list[promql.Expr] = []
    promql.walk(parsed(query), found.append)
    return found


def selectors(query: Any) -> list[promql.VectorSelector]:
    found = [node for node in nodes(query) if isinstance(node, promql.VectorSelector)]
    assert found
    return found


def base(name: str | None) -> str:
    assert name
    histogram = name.removesuffix("_bucket")
    return histogram if histogram in EXPORTED and EXPORTED[histogram].kind == "histogram" else name


def test_every_metric_label_and_value_is_in_the_table_of_names(query: Any) -> None:
    for selector in selectors(query):
        metric = EXPORTED[base(selector.name)]
        for matcher in selector.matchers.matchers:
            assert matcher.name in {"job", "instance", *metric.labels}
            if not matcher.value.startswith("$"):
                assert set(matcher.value.split("|")) <= LABEL_VALUES[matcher.name]
                assert matcher.value.split("|") == sorted(matcher.value.split("|"))


def test_every_selector_is_narrowed_by_the_variables(query: Any) -> None:
    for selector in selectors(query):
        narrowed = {m.name for m in selector.matchers.matchers if m.value == f"${m.name}" and m.op == promql.MatchOp.Re}
        labels = {"job", "instance", *EXPORTED[base(selector.name)].labels}
        assert narrowed == {name for name in VARIABLES if name in labels}


def test_counters_are_only_seen_through_rate_or_increase(query: Any) -> None:
    calls = [node for node in nodes(query) if isinstance(node, promql.Call) and node.func.name in WINDOWS]
    wrapped = [call.args[0].vector_selector.name for call in calls if isinstance(call.args[0], promql.MatrixSelector)]
    assert len(wrapped) == len(calls)  # and never over a sum
    counted = [s.name for s in selectors(query) if EXPORTED[base(s.name)].kind != "gauge"]
    assert sorted(map(str, wrapped)) == sorted(map(str, counted))


def test_windows_follow_the_step_or_the_time_shown(query: Any) -> None:
    windows = re.findall(r"(\w+)\(mcp_resume_\w+\{[^}]*\}\[([^\]]+)\]\)", query.expr)
    assert len(windows) == query.expr.count("[")
    assert all(window in WINDOWS[function] for function, window in windows)
    if query.instant:
        assert {window for _, window in windows} <= {"$__range"}


def test_sums_name_the_labels_that_they_keep(query: Any) -> None:
    """Labels that an exporter adds must not split a series in two."""
    for node in nodes(query):
        if isinstance(node, promql.AggregateExpr):
            assert str(node.op) in {"sum", "max", "min", "count"}
            assert node.modifier is not None
            assert node.modifier.type == promql.AggModifierType.By
            known = {"job", "instance", "le"}.union(*(EXPORTED[base(s.name)].labels for s in selectors(query)))
            assert set(node.modifier.labels) <= known


def test_nothing_at_all_is_a_zero(query: Any) -> None:
    """In a panel; marks on the time axis may be missing. A table needs one column that is always there."""
    if query.kind == "annotation" or (query.kind == "table" and not query.place.endswith("-A")):
        return
    whole = parsed(query)
    assert isinstance(whole, promql.BinaryExpr)
    assert str(whole.op) == "or"
    assert "vector(0" in whole.rhs.prettify()


def test_legends_name_labels_that_the_result_has(panel: Any) -> None:
    for target in panel.targets:
        legend = target["legendFormat"]
        used = set(re.findall(r"{{(\w+)}}", legend))
        kept = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"]))))
        assert used <= kept
        if not used:
            assert legend == "__auto"

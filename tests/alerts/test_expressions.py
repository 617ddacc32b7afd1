"""What each expression may say: only our names, only what keeps its meaning over restarts, deploys and silence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import promql_parser as promql

from otel_mcp_resume.report.names import LABEL_VALUES, METRICS
from otel_mcp_resume.report.series import zero_series
from otel_mcp_resume.rules.terms import Side

SLOWEST_SCRAPE = timedelta(minutes=1)
EXPORTED = {metric.name: metric for metric in METRICS}
COMPARISONS = {">", "<", ">=", "<=", "==", "!="}
SCRAPED = {"job", "instance"}
"""Labels that every series has from being scraped."""


def selectors(rule: Any) -> list[promql.VectorSelector]:
    return [node for node in rule.nodes() if isinstance(node, promql.VectorSelector)]


def ranges(rule: Any) -> list[promql.MatrixSelector]:
    return [node for node in rule.nodes() if isinstance(node, promql.MatrixSelector)]


def aggregations(rule: Any) -> list[promql.AggregateExpr]:
    return [node for node in rule.nodes() if isinstance(node, promql.AggregateExpr)]


def branches(expr: promql.Expr) -> Iterator[promql.Expr]:
    """The parts of a condition that can make it true, or are needed for it."""
    if isinstance(expr, promql.ParenExpr):
        yield from branches(expr.expr)
    elif isinstance(expr, promql.BinaryExpr) and str(expr.op) in {"and", "or"}:
        yield from branches(expr.lhs)
        yield from branches(expr.rhs)
    elif isinstance(expr, promql.BinaryExpr) and str(expr.op) == "unless":
        yield from branches(expr.lhs)
    else:
        yield expr


def compares(expr: promql.Expr) -> bool:
    found: list[promql.Expr] = []
    promql.walk(expr, found.append)
    return any(isinstance(node, promql.BinaryExpr) and str(node.op) in COMPARISONS for node in found)


def is_counter(name: str | None) -> bool:
    return name in EXPORTED and EXPORTED[name].kind == "counter"


def test_every_metric_is_exported_or_recorded(rule: Any, recorded: dict[str, Any]) -> None:
    for selector in selectors(rule):
        assert selector.name in EXPORTED or selector.name in recorded


def test_every_label_and_value_is_in_the_table_of_names(rule: Any) -> None:
    for selector in selectors(rule):
        labels = EXPORTED[selector.name].labels if selector.name in EXPORTED else ()
        for matcher in selector.matchers.matchers:
            assert matcher.name in labels
            assert set(matcher.value.split("|")) <= LABEL_VALUES[matcher.name]


def test_whatever_is_watched_exists_at_zero_from_the_start(rule: Any) -> None:
    """Of every counter that a selector asks for, and of every alternative in it, there is a series before any event."""
    born = [
        (metric.name, dict(zip(metric.labels, values, strict=True)))
        for side in Side
        for metric, values in zero_series(side)
    ]
    for selector in selectors(rule):
        positive = [m for m in selector.matchers.matchers if m.op in (promql.MatchOp.Equal, promql.MatchOp.Re)]
        if not is_counter(selector.name) or "hook" in EXPORTED[selector.name or ""].labels:
            continue  # the hooks are not in the table; each is born when it is put in place
        for asked in positive:
            for value in asked.value.split("|"):
                assert any(
                    name == selector.name
                    and labels[asked.name] == value
                    and all(labels[m.name] in m.value.split("|") for m in positive)
                    for name, labels in born
                ), f"no series of {selector.name} with {asked.name}={value} is born at 0"


def test_every_way_to_fire_compares(alert: Any) -> None:
    assert all(compares(branch) for branch in branches(alert.parsed))


def test_counters_are_only_seen_through_rate_or_increase(rule: Any) -> None:
    calls = [node for node in rule.nodes() if isinstance(node, promql.Call)]
    inside = [call.args[0] for call in calls if call.func.name in {"rate", "increase"}]
    assert all(isinstance(argument, promql.MatrixSelector) for argument in inside)  # and never over a sum
    wrapped = sum(is_counter(argument.vector_selector.name) for argument in inside)
    assert wrapped == len(inside)
    assert wrapped == sum(is_counter(selector.name) for selector in selectors(rule))
    assert not any(isinstance(node, promql.SubqueryExpr) for node in rule.nodes())


def test_sums_name_the_labels_that_they_keep(rule: Any) -> None:
    for aggregation in aggregations(rule):
        assert str(aggregation.op) in {"sum", "max", "count"}
        assert aggregation.modifier is not None
        assert aggregation.modifier.type == promql.AggModifierType.By
        assert aggregation.modifier.labels[0] == "job"
        names = [s.name for s in selectors(rule) if s.name in EXPORTED]
        known = SCRAPED.union(*(EXPORTED[name].labels for name in names))
        assert set(aggregation.modifier.labels) <= known


def test_an_alert_is_of_a_service_and_not_of_an_instance(alert: Any, labels_of: Any) -> None:
    """Instances are replaced by every deploy; an alert of each would be a page of each."""
    assert "instance" not in labels_of(alert)


def test_a_pattern_is_used_only_for_a_choice(rule: Any) -> None:
    for selector in selectors(rule):
        for matcher in selector.matchers.matchers:
            if matcher.op in (promql.MatchOp.Re, promql.MatchOp.NotRe):
                assert re.fullmatch(r"\w+(\|\w+)+", matcher.value)
                assert matcher.value.split("|") == sorted(matcher.value.split("|"))
            else:
                assert "|" not in matcher.value


def test_windows_hold_four_scrapes(rule: Any) -> None:
    assert all(selector.range >= 4 * SLOWEST_SCRAPE for selector in ranges(rule))


def test_a_share_has_a_floor_and_a_delay(alert: Any) -> None:
    shares = [s.name for s in selectors(alert) if s.name and ":ratio_" in s.name]
    if not shares:
        return
    floors = [b for b in branches(alert.parsed) if isinstance(b, promql.BinaryExpr) and str(b.op) == ">="]
    assert floors
    assert all("increase" in floor.lhs.prettify() for floor in floors)
    assert promql.parse_duration(alert.raw["for"]) >= timedelta(minutes=2)


def test_both_sides_of_a_share_are_summed_by_the_same_labels(record: Any, labels_of: Any) -> None:
    if not isinstance(record.parsed, promql.BinaryExpr):
        return
    assert str(record.parsed.op) == "/"
    assert labels_of(record, record.parsed.lhs) == labels_of(record, record.parsed.rhs)


def test_a_lost_event_waits_for_nothing(alert: Any) -> None:
    """A counter of what must never happen has no `for`, and keeps firing so that it does not flap."""
    parsed = alert.parsed
    rare = isinstance(parsed, promql.BinaryExpr) and str(parsed.op) == ">" and parsed.rhs.prettify() == "0"
    if rare:
        assert "for" not in alert.raw
        assert "keep_firing_for" in alert.raw or alert.severity == "info"
    elif "keep_firing_for" not in alert.raw:
        assert promql.parse_duration(alert.raw["for"]) >= timedelta(minutes=2)


def test_absence_is_patient_and_matches_exactly(alert: Any) -> None:
    absences = [node for node in alert.nodes() if isinstance(node, promql.Call) and node.func.name.startswith("absent")]
    for absence in absences:
        assert promql.parse_duration(alert.raw["for"]) >= timedelta(minutes=10)
        selector = absence.args[0]
        assert isinstance(selector, promql.VectorSelector)
        assert all(matcher.op == promql.MatchOp.Equal for matcher in selector.matchers.matchers)
        assert selector.name == "mcp_resume_info"  # always 1, from the start


def test_recorded_names_say_level_metric_and_operation(record: Any, labels_of: Any) -> None:
    level, metric, operation = record.name.split(":")
    assert level == "_".join(label for label in ("job", "side", "generation") if label in labels_of(record))
    assert any(metric.startswith(name.removesuffix("_total")) for name in EXPORTED)
    window = re.fullmatch(r"(?:increase|ratio_increase)(\d+[mhd])", operation)
    assert window
    assert {selector.range for selector in ranges(record)} <= {promql.parse_duration(window[1])}


def test_nothing_is_recorded_for_nobody(record: Any, alerts: list[Any], recorded: dict[str, Any]) -> None:
    users = [selector.name for rule in [*alerts, *recorded.values()] for selector in selectors(rule)]
    assert record.name in users

from __future__ import annotations

import re

import pytest

from otel_mcp_resume.report import fields
from otel_mcp_resume.report.names import LABEL_VALUES, METRICS, MetricName
from otel_mcp_resume.report.series import REASONS, RULES, STREAMS, zero_series
from otel_mcp_resume.rules.terms import Generation, Outcome, Reason, Side, Stream, ViolationRule

PUBLISHED = """
mcp_resume_attempts_total | counter | side, generation, previous_generation, stream, outcome, reason
mcp_resume_violations_total | counter | side, generation, rule
mcp_resume_undelivered_events_total | counter | generation, stream, cause
mcp_resume_events_total | counter | side, generation, stream
mcp_resume_duplicate_events_total | counter | side, generation, stream, kind
mcp_resume_disconnects_total | counter | side, generation, stream, cause
mcp_resume_open_streams | gauge | side, generation, stream
mcp_resume_open_sessions | gauge | side, generation
mcp_resume_pending_requests | gauge | generation
mcp_resume_oldest_pending_request_seconds | gauge | generation
mcp_resume_downtime_seconds | histogram | side, generation, stream
mcp_resume_verdict_seconds | histogram | side, outcome
mcp_resume_ledger_evictions_total | counter | side
mcp_resume_info | gauge | version, mcp_version
mcp_resume_hook_installed | gauge | hook
mcp_resume_internal_errors_total | counter | hook
"""
"""What users have dashboards on. A change here is a breaking change."""


def test_the_table_is_what_was_published() -> None:
    table = [f"{name.name} | {name.kind} | {', '.join(name.labels)}" for name in METRICS]
    assert table == PUBLISHED.strip().splitlines()


@pytest.mark.parametrize("name", METRICS, ids=lambda name: name.name)
def test_a_metric_is_well_named(name: MetricName) -> None:
    assert name.help.endswith(".")
    assert (name.kind == "counter") == name.name.endswith("_total")
    assert (name.kind == "gauge") == (name.across is not None)
    assert (name.kind == "histogram") == bool(name.buckets)
    assert all(isinstance(bound, float) for bound in name.buckets)
    assert list(name.buckets) == sorted(set(name.buckets))


@pytest.mark.parametrize("name", METRICS, ids=lambda name: name.name)
def test_the_usual_translation_of_the_otlp_name_gives_the_prometheus_name(name: MetricName) -> None:
    unit = {"s": "_seconds", "": ""}[name.otel_unit]
    suffix = "_total" if name.kind == "counter" else ""
    assert name.otel_name.replace(".", "_") + unit + suffix == name.name


@pytest.mark.parametrize("side", Side)
def test_series_at_0_fit_the_table(side: Side) -> None:
    series = [(name, tuple(map(str, values))) for name, values in zero_series(side)]
    assert len(set(series)) == len(series)
    assert 100 < len(series) < 400
    for name, values in series:
        assert len(values) == len(name.labels)
        labels = dict(zip(name.labels, values, strict=True))
        assert all(value in LABEL_VALUES[label] for label, value in labels.items())
        assert labels.get("side", str(side)) == str(side)


@pytest.mark.parametrize("side", Side)
def test_every_outcome_reason_and_rule_of_a_side_exists_at_0(side: Side) -> None:
    attempts = [values for name, values in zero_series(side) if name.name == "mcp_resume_attempts_total"]
    assert {(values[4], values[5]) for values in attempts} == {
        (outcome, reason) for outcome, reasons in REASONS[side].items() for reason in reasons
    }
    assert {(values[1], values[3]) for values in attempts} == {
        (generation, stream) for generation, streams in STREAMS.items() for stream in streams
    }
    migrations = {values[4] for values in attempts if values[1] is not values[2]}
    assert migrations == {Outcome.GAP, Outcome.UNPROVEN}
    violations = [values for name, values in zero_series(side) if name.name == "mcp_resume_violations_total"]
    assert {values[2] for values in violations} == set(RULES[side])


def test_nothing_of_the_vocabulary_is_forgotten() -> None:
    assert {reason for side in REASONS.values() for reasons in side.values() for reason in reasons} | {
        Reason.MARKER
    } == set(Reason)
    assert {outcome for side in REASONS.values() for outcome in side} == set(Outcome)
    assert {rule for rules in RULES.values() for rule in rules} == set(ViolationRule)
    assert set(STREAMS) == set(Generation)
    assert {stream for streams in STREAMS.values() for stream in streams} == set(Stream)


@pytest.mark.parametrize("rule", ViolationRule)
def test_a_breach_that_can_be_the_reason_of_a_gap_is_a_rule_of_that_side(rule: ViolationRule) -> None:
    for side in Side:
        if str(rule) in map(str, REASONS[side][Outcome.GAP]):
            assert rule in RULES[side]


def test_attributes_are_namespaced_and_unique() -> None:
    assert len(set(fields.ATTRIBUTES)) == len(fields.ATTRIBUTES)
    assert set(fields.IDENTIFIERS) <= set(fields.ATTRIBUTES)
    assert all(re.fullmatch(r"(mcp|jsonrpc|http|server|network)\.[a-z_.]+", name) for name in fields.ATTRIBUTES)

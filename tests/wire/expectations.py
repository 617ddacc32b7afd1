"""The `expect` section of a case against what the instrumented process reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from .bounds import Bound, Problem, kept, without
from .samples import Sample, described, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .cases import Case
    from .driven.steps import Json

__all__ = ["check_metrics", "expects_absence", "undelivered_entries"]

ATTEMPTS = "mcp_resume_attempts_total"
VIOLATIONS = "mcp_resume_violations_total"
UNDELIVERED = "mcp_resume_undelivered_events_total"
INTERNAL_ERRORS = "mcp_resume_internal_errors_total"
INFO = "mcp_resume_info"

ALARMING = ("gap", "abandoned", "failed")

Samples = list[Sample]


def check_metrics(case: Case, samples: Samples) -> list[Problem]:
    """All that does not hold, or does not hold yet."""
    expect = case.expect
    problems = [
        Bound(1, 1).problem(INFO, total(samples, INFO, {})),
        _check_zero(samples, INTERNAL_ERRORS, {}),
        *(_check_counter(samples, ATTEMPTS, entry) for entry in expect.get("attempts", [])),
        *(_check_zero(samples, ATTEMPTS, entry) for entry in expect.get("no_attempts", [])),
        *(_check_counter(samples, VIOLATIONS, entry) for entry in expect.get("violations", [])),
        *(_check_counter(samples, UNDELIVERED, entry) for entry in undelivered_entries(expect)),
        *(_check_value(samples, entry) for entry in expect.get("metrics", [])),
    ]
    if expect.get("no_violations"):
        problems.append(_check_zero(samples, VIOLATIONS, {}))
    if case.healthy:
        problems += _check_healthy(expect, samples)
    return kept(problems)


def expects_absence(case: Case) -> bool:
    """Whether something must stay away, so that an early look proves nothing."""
    expect = case.expect
    wanted = [entry.get("count", ">=1") for key in ("attempts", "violations") for entry in expect.get(key, [])]
    wanted += [entry.get("count", ">=1") for entry in undelivered_entries(expect)]
    wanted += [entry["value"] for entry in expect.get("metrics", [])]
    exact = any(Bound.parse(count).exact for count in wanted)
    return case.healthy or exact or "no_attempts" in expect or "no_violations" in expect


def _check_counter(samples: Samples, name: str, entry: Mapping[str, Any]) -> Problem | None:
    labels = without(entry, "count")
    return Bound.parse(entry.get("count", ">=1")).problem(described(name, labels), total(samples, name, labels))


def _check_zero(samples: Samples, name: str, labels: Mapping[str, Any]) -> Problem | None:
    return Bound(0, 0).problem(described(name, labels), total(samples, name, labels))


def _check_value(samples: Samples, entry: Mapping[str, Any]) -> Problem | None:
    name, labels = entry["name"], entry.get("labels", {})
    return Bound.parse(entry["value"]).problem(described(name, labels), total(samples, name, labels))


def _check_healthy(expect: Json, samples: Samples) -> list[Problem | None]:
    unproven = [entry for entry in expect.get("attempts", []) if entry.get("outcome") == "unproven"]
    allowed = sum(entry["count"] for entry in unproven)
    return [
        *(_check_zero(samples, ATTEMPTS, {"outcome": outcome}) for outcome in ALARMING),
        Bound(allowed, allowed).problem("unproven attempts", total(samples, ATTEMPTS, {"outcome": "unproven"})),
        _check_zero(samples, VIOLATIONS, {}),
        _check_zero(samples, UNDELIVERED, {}),
    ]


def undelivered_entries(expect: Json) -> list[Json]:
    """A count, an entry, or a list of entries."""
    wanted: Any = expect.get("undelivered", [])
    if isinstance(wanted, dict):
        return [cast("Json", wanted)]
    return cast("list[Json]", wanted) if isinstance(wanted, list) else [{"count": wanted}]

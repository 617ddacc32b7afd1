"""What the case files say is sayable: a misspelt label in `no_attempts` would never fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from otel_mcp_resume.rules import terms

from .cases import CASES, Case, CaseError, find_cases, load_case
from .expectations import undelivered_entries
from .playable import LIMITS, unplayable

if TYPE_CHECKING:
    from enum import Enum
    from pathlib import Path

    from .driven.steps import Json

VOCABULARY: dict[str, type[Enum]] = {
    "side": terms.Side,
    "generation": terms.Generation,
    "previous_generation": terms.Generation,
    "stream": terms.Stream,
    "outcome": terms.Outcome,
    "reason": terms.Reason,
    "rule": terms.ViolationRule,
}

ALL = find_cases([CASES])


def entries(case: Case) -> list[Json]:
    return [
        *undelivered_entries(case.expect),
        *(metric.get("labels", {}) for metric in case.expect.get("metrics", [])),
        *(entry for key in ("attempts", "no_attempts", "violations") for entry in case.expect.get(key, [])),
    ]


@pytest.mark.parametrize("case", ALL, ids=str)
def test_labels_are_of_the_vocabulary(case: Case) -> None:
    for entry in entries(case):
        for label, value in entry.items():
            if label in VOCABULARY:
                assert value in {str(term) for term in VOCABULARY[label]}
            else:
                assert label in {"count", "cause", "kind"}


@pytest.mark.parametrize("case", ALL, ids=str)
def test_case_says_where_it_comes_from_and_expects_something(case: Case) -> None:
    assert case.body["about"].strip()
    assert case.body["source"].strip()
    assert case.healthy == case.name.startswith("healthy/")
    assert case.healthy or case.expect
    steps = case.section("client" if case.instrumented == "client" else "steps")
    assert steps


def test_every_limit_is_that_of_some_case_and_binds_older_versions_only() -> None:
    for limit in LIMITS:
        assert any(limit.needed_by(case) for case in ALL), limit.reason
    newest = {1: (1, 30), 2: (2, 2)}
    assert not any(unplayable(case, newest[case.sdk[0]]) for case in ALL)
    assert all(unplayable(case, (2, 1)) for case in ALL if case.name == "positive/resume-redirected-away")
    assert not any(unplayable(case, (2, 0)) for case in ALL if case.name == "healthy/token-of-gone-session")


@pytest.mark.parametrize(
    "text",
    ["instrumented: client\nexpects: {}", "instrumented: proxy", "instrumented: client\nexpect: {attempt: []}", "a: ["],
)
def test_misspelt_case_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "case.yaml"
    file.write_text(text)
    with pytest.raises(CaseError):
        load_case(file)

"""Some cases without the plugin: is the situation really provoked, and would the runner notice if it were not?"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

import pytest

from .cases import CASES, Case, load_case
from .play import TOTAL_LIMIT, Setup, judge

PROVOKED = (
    "healthy/clean-resume-server",
    "healthy/sse-crlf-byte-by-byte",
    "positive/replay-live-window",
    "positive/seed-streamable-failover",
)


@pytest.fixture(scope="module")
def plain() -> Setup:
    return Setup.of(sys.executable, plain=True)


def named(name: str) -> Case:
    return load_case(CASES / f"{name}.yaml")


@pytest.mark.timeout(TOTAL_LIMIT)
@pytest.mark.parametrize("name", PROVOKED)
def test_situation_is_provoked(name: str, plain: Setup) -> None:
    verdict = asyncio.run(judge(named(name), plain))
    if verdict.status == "skip":
        pytest.skip(verdict.detail)
    assert verdict.status == "ok", "\n".join(verdict.lines())
    assert verdict.samples == []


@pytest.mark.timeout(TOTAL_LIMIT)
def test_situation_that_does_not_come_about_is_a_failure(plain: Setup) -> None:
    case = named("healthy/json-only-client")
    asked_too_much = replace(case, body={**case.body, "wire": [{"rpc": "tools/call", "count": 3}]})
    verdict = asyncio.run(judge(asked_too_much, plain))
    assert verdict.status == "FAIL"
    assert "wanted 3, is 2" in verdict.detail


@pytest.mark.timeout(TOTAL_LIMIT)
def test_process_without_metrics_is_a_failure(plain: Setup) -> None:
    """As it would be if the plugin were not enabled."""
    unplugged = replace(plain, plain=False, plugin=False)
    verdict = asyncio.run(judge(named("positive/orphan-token-rejected"), unplugged))
    assert verdict.status == "FAIL"
    assert verdict.detail == "nobody serves /metrics"

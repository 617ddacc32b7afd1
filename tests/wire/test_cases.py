"""Every case against the SDK of this interpreter, with the plugin. Cases mostly wait: more workers than cores pay."""

from __future__ import annotations

import asyncio
import importlib.metadata
import sys
from typing import TYPE_CHECKING

import pytest

from .cases import CASES, find_cases
from .play import TOTAL_LIMIT, Setup, judge

if TYPE_CHECKING:
    from .cases import Case


@pytest.fixture(scope="module")
def setup() -> Setup:
    importlib.metadata.version("otel-mcp-resume")  # raises where the plugin is not installed
    return Setup.of(sys.executable)


@pytest.mark.timeout(TOTAL_LIMIT)
@pytest.mark.parametrize("case", find_cases([CASES]), ids=str)
def test_what_is_reported(case: Case, setup: Setup) -> None:
    verdict = asyncio.run(judge(case, setup))
    if verdict.status == "skip":
        pytest.skip(verdict.detail)
    assert verdict.status == "ok", "\n".join(verdict.lines())

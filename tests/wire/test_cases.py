"""Every case against the SDK of this interpreter, with the plugin. Cases mostly wait: more workers than cores pay.

With `WIRE_NURSERY=1`, one process imports everything and forks a child for each case, many at a time: quicker by far,
and not what users do, who start a process. `tests/matrix.py` says where which is done.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from .cases import CASES, find_cases
from .nursery import Nursery
from .play import TOTAL_LIMIT, Setup, Verdict, judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .cases import Case

FORKED = bool(os.environ.get("WIRE_NURSERY"))
AT_A_TIME = 10
"""Cases whose processes were forked."""


@pytest.fixture(scope="module")
def setup() -> Setup:
    importlib.metadata.version("otel-mcp-resume")  # raises where the plugin is not installed
    return Setup.of(sys.executable)


@pytest.fixture(scope="module")
def forked(request: pytest.FixtureRequest, setup: Setup) -> dict[str, Verdict]:
    """The verdicts on all cases that are to be tested here."""
    if not FORKED:
        return {}
    items: list[Any] = request.session.items
    return asyncio.run(_all([item.callspec.params["case"] for item in items if item.path == request.path], setup))


async def _all(cases: Sequence[Case], setup: Setup) -> dict[str, Verdict]:
    async with Nursery.started(setup.python, plugin=True, serve=False) as nursery:
        place = asyncio.Semaphore(AT_A_TIME)

        async def one(case: Case) -> Verdict:
            async with place:
                return await judge(case, replace(setup, nursery=nursery))

        return {verdict.name: verdict for verdict in await asyncio.gather(*map(one, cases))}


@pytest.mark.timeout(TOTAL_LIMIT)
@pytest.mark.parametrize("case", find_cases([CASES]), ids=str)
def test_what_is_reported(case: Case, setup: Setup, forked: dict[str, Verdict]) -> None:
    verdict = forked[case.name] if FORKED else asyncio.run(judge(case, setup))
    if verdict.status == "skip":
        pytest.skip(verdict.detail)
    assert verdict.status == "ok", "\n".join(verdict.lines())


if FORKED:
    test_what_is_reported = pytest.mark.xdist_group("nursery")(test_what_is_reported)

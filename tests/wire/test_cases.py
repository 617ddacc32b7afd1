"""Every case against the SDK of this interpreter, with the plugin. Cases mostly wait: more workers than cores pay.

With `WIRE_NURSERY=1`, one process imports everything and forks a child for each case, many at a time: quicker by far,
and not what users do, who start a process. With `WIRE_NURSERY=most`, some cases of every kind are played by processes
that are started. `tests/matrix.py` says where which is done.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import sys
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from .cases import CASES, find_cases
from .nursery import Nursery
from .play import TOTAL_LIMIT, Setup, Verdict, judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _pytest.mark import ParameterSet

    from .cases import Case

NURSERY = os.environ.get("WIRE_NURSERY")
STARTED_OF = 8
"""Of so many cases of a kind, one is played by a process that is started where most are forked."""
AT_A_TIME = 10
"""Cases whose processes were forked."""


def kind(case: Case) -> tuple[str, str, str]:
    """Cases of one kind go the same way through the plugin until something goes wrong."""
    plays = case.section("client") or [case.section("server") or {}]
    transports = {str(play.get("transport", "streamable_http")) for play in plays}
    return case.name.partition("/")[0], case.instrumented, " ".join(sorted(transports))


def started(cases: Sequence[Case]) -> set[str]:
    """The names of those that are played by a process of their own: always the same, and some of every kind."""
    if NURSERY != "most":
        return set() if NURSERY else {case.name for case in cases}
    seen, found = Counter[tuple[str, str, str]](), set[str]()
    for case in cases:
        if seen[kind(case)] % STARTED_OF == 0:
            found.add(case.name)
        seen[kind(case)] += 1
    return found


ALL = find_cases([CASES])
STARTED = started(ALL)


@pytest.fixture(scope="module")
def setup() -> Setup:
    importlib.metadata.version("otel-mcp-resume")  # raises where the plugin is not installed
    return Setup.of(sys.executable)


@pytest.fixture(scope="module")
def forked(request: pytest.FixtureRequest, setup: Setup) -> dict[str, Verdict]:
    """The verdicts on all cases that are to be tested here, but those that are played one by one."""
    items: list[Any] = request.session.items
    cases: list[Case] = [item.callspec.params["case"] for item in items if item.path == request.path]
    return asyncio.run(_all([case for case in cases if case.name not in STARTED], setup))


async def _all(cases: Sequence[Case], setup: Setup) -> dict[str, Verdict]:
    async with Nursery.started(setup.python, plugin=True, serve=False) as nursery:
        place = asyncio.Semaphore(AT_A_TIME)

        async def one(case: Case) -> Verdict:
            async with place:
                return await judge(case, replace(setup, nursery=nursery))

        return {verdict.name: verdict for verdict in await asyncio.gather(*map(one, cases))}


def params() -> list[ParameterSet]:
    group = pytest.mark.xdist_group("nursery")
    return [pytest.param(case, id=case.name, marks=() if case.name in STARTED else group) for case in ALL]


@pytest.mark.timeout(TOTAL_LIMIT)
@pytest.mark.parametrize("case", params())
def test_what_is_reported(case: Case, request: pytest.FixtureRequest, setup: Setup) -> None:
    is_started = case.name in STARTED
    verdict = asyncio.run(judge(case, setup)) if is_started else request.getfixturevalue("forked")[case.name]
    if verdict.status == "skip":
        pytest.skip(verdict.detail)
    assert verdict.status == "ok", "\n".join(verdict.lines())

"""A few cases of each kind, to the byte; `python -m tests.wire --same` plays all of them."""

from __future__ import annotations

import asyncio
import sys

import pytest

from .cases import CASES, find_cases
from .play import TOTAL_LIMIT, Setup, Verdict
from .same import Nurseries, compare

CHOSEN = (
    *("healthy/clean-resume-client", "healthy/clean-resume-server", "healthy/legacy-client", "healthy/legacy-session"),
    *("healthy/cancelled-stateless", "healthy/json-only-server"),
    *("positive/replay-live-window", "positive/resume-reset"),
)


async def compared() -> list[Verdict]:
    setup = Setup.of(sys.executable)
    cases = [case for case in find_cases([CASES]) if case.name in CHOSEN]
    async with Nurseries.open(sys.executable) as nurseries:
        return await asyncio.gather(*(compare(case, setup, nurseries) for case in cases))


@pytest.mark.once
@pytest.mark.timeout(TOTAL_LIMIT)
def test_no_byte_and_no_record_of_the_sdk_differs() -> None:
    verdicts = asyncio.run(compared())
    assert len(verdicts) == len(CHOSEN)
    assert [verdict.status for verdict in verdicts] == ["ok"] * len(CHOSEN), [verdict.lines() for verdict in verdicts]

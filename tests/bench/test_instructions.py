"""The precise gate: instructions for each message and call, in units of a reference that runs beside them.

A count does not depend on what else the machine does, and the ratio hardly on the build of Python.
"""

from __future__ import annotations

import pytest

from tests.bench.instructions import baseline, count, is_possible, relative

MARGIN = 1.10
"""What two builds of one version of Python may differ by."""


@pytest.mark.once
@pytest.mark.timeout(660)
def test_a_message_costs_no_more_than_was_committed_to() -> None:
    if not is_possible():
        pytest.skip("valgrind is not installed")
    committed = baseline()
    if not committed:
        pytest.skip("never counted with this version of Python: `python -m tests.bench micro --update`")
    ratios = relative(count())
    assert ratios.keys() == committed.keys()
    over = {
        title: (round(ratio, 2), committed[title])
        for title, ratio in ratios.items()
        if ratio > MARGIN * committed[title]
    }
    assert not over, f"more than was committed to, in units of the reference: {over}"
    half = {
        title: (round(ratio, 2), committed[title]) for title, ratio in ratios.items() if 2 * ratio < committed[title]
    }
    assert not half, f"is it still measured? Then commit to what it costs now: {half}"

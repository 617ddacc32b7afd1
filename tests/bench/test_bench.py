"""The benchmark itself, in its quick form. It fails on what no noise explains."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.figures import figures
from tests.bench.process import ROOT
from tests.bench.turns import SIDES, Samples

GROSS = 1.5
"""Times the bare SDK, in CPU time. Other instrumentations are beyond it; the plugin is at 1.02 to 1.05."""


def _samples(**arms: list[float]) -> Samples:
    return {arm: dict.fromkeys(SIDES, figures) for arm, figures in arms.items()}


def test_an_arm_is_compared_with_the_bare_sdk_of_the_same_round() -> None:
    found = {each.arm: each for each in figures(_samples(bare=[100, 200, 300], plugin=[103, 203, 390]))}
    assert (found["plugin"].added, found["plugin"].ratio) == (3, 203 / 200)
    assert (found["bare"].added, found["bare"].ratio) == (0, 1)


@pytest.mark.once
@pytest.mark.timeout(400)
def test_nothing_costs_grossly_more_than_without_the_plugin(tmp_path: Path) -> None:
    target = tmp_path / "figures.json"
    workloads = ("stored", "resume", "startup")
    command = [sys.executable, "-m", "tests.bench", *workloads, "--quick", "--json", str(target)]
    subprocess.run([*command, "--arms", "plugin"], cwd=ROOT, check=True, timeout=300)
    told: dict[str, Any] = json.loads(target.read_text())
    for workload in ("stored", "resume"):
        cost = {each["side"]: each["ratio"] for each in told[workload] if each["arm"] == "plugin"}
        assert cost["server"] < GROSS, told[workload]
        assert cost["client"] < GROSS, told[workload]
    on = next(each for each in told["startup"] if each["title"] == "import mcp, plugin on")
    assert on["added_memory"] < 30, told["startup"]

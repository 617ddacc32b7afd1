"""From samples to what is told: medians, what an arm adds to the bare SDK, and how sure that is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from tests.bench.arms import AGAIN, ARMS, BARE
from tests.bench.turns import SIDES, Samples

__all__ = ["Figure", "as_json", "figures", "table"]


@dataclass(frozen=True)
class Figure:
    """One arm on one side, in microseconds per unit."""

    arm: str
    side: str
    median: float
    added: float
    """The median of what it took more than the bare SDK in the same round."""
    ratio: float
    """Of the medians."""


def figures(samples: Samples) -> list[Figure]:
    """Every arm against the bare SDK. What the second bare arm adds is the noise."""
    found: list[Figure] = []
    for arm, sides in samples.items():
        for side in SIDES:
            bare, own = samples[BARE][side], sides[side]
            added = median(a - b for a, b in zip(own, bare, strict=True))
            found.append(Figure(arm, side, median(own), added, median(own) / median(bare)))
    return found


def table(title: str, found: list[Figure]) -> str:
    """Markdown. Each cell says what is added, and the ratio."""
    lines = [f"| {title} | server | client | wall |", "|---|---|---|---|"]
    by_arm: dict[str, list[Figure]] = {}
    for figure in found:
        by_arm.setdefault(figure.arm, []).append(figure)
    for arm, cells in by_arm.items():
        shown = (f"{cell.median:.0f} µs" if arm == BARE else _cell(cell) for cell in cells)
        name = "bare SDK again: the noise" if arm == AGAIN else ARMS[arm].title
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _cell(figure: Figure) -> str:
    return f"{figure.added:+.1f} µs, {figure.ratio:.3f}"


def as_json(found: list[Figure]) -> list[dict[str, Any]]:
    """For `--json`."""
    return [asdict(figure) for figure in found]

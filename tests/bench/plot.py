"""The plot of the growth tables. Needs matplotlib, which is in the dependency group `bench`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from tests.bench.growth import Series

__all__ = ["draw"]

matplotlib: Any = importlib.import_module("matplotlib")
matplotlib.use("Agg")
pyplot: Any = importlib.import_module("matplotlib.pyplot")

COLOURS = {"server": "#1f77b4", "client": "#d62728"}


def draw(found: dict[str, Series], target: Path) -> None:
    """One column for each part: what a unit costs above, what is held below."""
    figure, axes = pyplot.subplots(2, len(found), figsize=(3.2 * len(found), 5), sharex="col")
    for column, (title, series) in enumerate(found.items()):
        unit = "session" if title.startswith("sessions") else "event"
        for side, points in series.items():
            sizes = [point.size for point in points]
            axes[0, column].plot(sizes, [point.spent for point in points], "o-", color=COLOURS[side], label=side)
            held = [max(point.held, 1) / 1024 for point in points]
            axes[1, column].plot(sizes, held, "o-", color=COLOURS[side], label=side)
        for row, label in enumerate((f"µs added per {unit}", "KiB held")):
            axis = axes[row, column]
            axis.set_xscale("log")
            axis.set_ylim(bottom=0)
            axis.set_ylabel(label)
            axis.grid(visible=True, alpha=0.3)
        axes[1, column].set_xlabel(title)
    axes[0, 0].legend()
    figure.tight_layout()
    figure.savefig(target, dpi=60)

"""What the demo prints: lines while it runs, a table at the end. Plain text, also where there is no terminal."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence

__all__ = ["Terminal"]

GREEN, RED = "32", "31"
NARROWEST = 60
"""Columns. A narrower terminal gets lines that it has to break itself."""


class Terminal:
    """Standard output of the demo."""

    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose
        self._coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._start = time.monotonic()
        self.width = max(NARROWEST, shutil.get_terminal_size((100, 24)).columns)

    def print(self, text: str = "") -> None:
        """As it is, and at once, also into a pipe."""
        print(text, flush=True)

    def say(self, scene: str, line: str) -> None:
        """Progress of one scene."""
        self.print(f"{time.monotonic() - self._start:5.1f} s  {scene:<14} {line}")

    def detail(self, scene: str, line: str) -> None:
        """What only the curious want to know."""
        if self._verbose:
            self.say(scene, f"| {line}")

    def paint(self, text: str, *, good: bool) -> str:
        """The text in green or red, where colours are wanted."""
        return f"\x1b[{GREEN if good else RED}m{text}\x1b[0m" if self._coloured else text

    def table(self, rows: Sequence[tuple[str, str, str, bool]]) -> None:
        """Scene, what was noticed, the verdict, and whether that is as it must be."""
        name = max(len(row[0]) for row in rows)
        noticed = (self.width - name - 4) * 55 // 100
        verdict = self.width - name - 4 - noticed
        self.print(f"{'scene':<{name}}  {'what the application noticed':<{noticed}}  verdict")
        self.print(f"{'-' * name}  {'-' * noticed}  {'-' * verdict}")
        for title, middle, last, good in rows:
            left, right = textwrap.wrap(middle, noticed) or [""], textwrap.wrap(last, verdict) or [""]
            for at in range(max(len(left), len(right))):
                cells = [cell[at] if at < len(cell) else "" for cell in ([title], left, right)]
                self.print(f"{cells[0]:<{name}}  {cells[1]:<{noticed}}  {self.paint(cells[2], good=good)}".rstrip())

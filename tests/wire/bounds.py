"""What is wanted, and what is wrong if it is not so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .driven.steps import Json

__all__ = ["Bound", "Problem", "kept", "without"]


@dataclass(frozen=True)
class Problem:
    """One expectation that does not hold. A final one can never hold again: counters only grow."""

    text: str
    final: bool = False


@dataclass(frozen=True)
class Bound:
    """How many are wanted: exactly N, or at least N."""

    least: float
    most: float | None

    @classmethod
    def parse(cls, wanted: float | str) -> Bound:
        text = str(wanted).strip()
        if text.startswith(">="):
            return cls(float(text[2:]), None)
        return cls(float(text), float(text))

    @property
    def exact(self) -> bool:
        return self.most is not None

    def problem(self, what: str, actual: float) -> Problem | None:
        if actual < self.least:
            return Problem(f"{what}: wanted {self}, is {actual:g}")
        if self.most is not None and actual > self.most:
            return Problem(f"{what}: wanted {self}, is {actual:g}", final=True)
        return None

    def __str__(self) -> str:
        return f"{self.least:g}" if self.exact else f">={self.least:g}"


def kept(problems: Iterable[Problem | None]) -> list[Problem]:
    return [problem for problem in problems if problem is not None]


def without(entry: Mapping[str, Any], *keys: str) -> Json:
    return {key: value for key, value in entry.items() if key not in keys}

"""Case files: where they are, and what one may say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from .driven.steps import Json

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CASES", "Case", "CaseError", "find_cases", "for_generation", "load_case"]

CASES = Path(__file__).parent / "cases"

KEYS = {"about", "source", "instrumented", "sdk", "healthy", "client", "server", "steps", "expect", "wire"}
EXPECT_KEYS = {"attempts", "no_attempts", "violations", "no_violations", "undelivered", "metrics"}


class CaseError(Exception):
    """The case could not be played: a mistake in the file, or a peer that never came up."""


@dataclass(frozen=True)
class Case:
    """One case file."""

    name: str
    instrumented: Literal["client", "server"]
    sdk: tuple[int, ...]
    healthy: bool
    body: Json

    def __str__(self) -> str:
        return self.name

    def section(self, key: str) -> Any:
        return self.body.get(key)

    @property
    def expect(self) -> Json:
        return self.body.get("expect") or {}

    @property
    def wire(self) -> list[Json]:
        return self.body.get("wire") or []


def load_case(path: Path) -> Case:
    """Reads a case. Raises `CaseError` if it says what no case can say."""
    try:
        body: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise CaseError(f"{path}: {error}") from error
    if unknown := set(body) - KEYS:
        raise CaseError(f"{path.name}: unknown keys {sorted(unknown)}")
    if body.get("instrumented") not in ("client", "server"):
        raise CaseError(f"{path.name}: instrumented must be client or server")
    if unknown := set(body.get("expect") or {}) - EXPECT_KEYS:
        raise CaseError(f"{path.name}: unknown expectations {sorted(unknown)}")
    return Case(
        name=f"{path.parent.name}/{path.stem}",
        instrumented=body["instrumented"],
        sdk=tuple(body.get("sdk", (1, 2))),
        healthy=bool(body.get("healthy", False)),
        body=body,
    )


def find_cases(places: Iterable[Path | str]) -> list[Case]:
    """The cases in these files and directories, in the order of their names."""
    cases: list[Case] = []
    for place in map(Path, places):
        files = sorted(place.rglob("*.yaml")) if place.is_dir() else [place]
        cases += [load_case(file) for file in files]
    return cases


def for_generation(checks: Iterable[Json], generation: int) -> list[Json]:
    """The checks of a `wire` section that apply to an SDK generation."""
    return [check for check in checks if generation in check.get("sdk", (1, 2))]

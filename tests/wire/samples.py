"""The samples of a Prometheus text exposition."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Sample", "described", "parse_metrics", "total"]

SAMPLE_LINE = re.compile(r"^(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
OURS = re.compile(r"mcp_resume(?!.*_(bucket|created)$)")


@dataclass(frozen=True)
class Sample:
    """One line of `/metrics`."""

    name: str
    labels: Mapping[str, str]
    value: float

    @property
    def worth_showing(self) -> bool:
        return bool(self.value) and OURS.match(self.name) is not None

    def __str__(self) -> str:
        return f"{described(self.name, dict(sorted(self.labels.items())))} {self.value:g}"


def parse_metrics(text: str) -> list[Sample]:
    samples: list[Sample] = []
    for line in text.splitlines():
        if match := SAMPLE_LINE.match(line):
            labels = {str(key): str(value) for key, value in LABEL.findall(match["labels"] or "")}
            samples.append(Sample(match["name"], labels, float(match["value"])))
    return samples


def total(samples: Iterable[Sample], name: str, labels: Mapping[str, Any]) -> float:
    """The sum over all series of that name that have these labels, whatever others they have."""
    wanted = {key: str(value) for key, value in labels.items()}
    return sum(s.value for s in samples if s.name == name and wanted.items() <= s.labels.items())


def described(name: str, labels: Mapping[str, Any]) -> str:
    return f"{name}{{{','.join(f'{key}={value}' for key, value in labels.items())}}}"

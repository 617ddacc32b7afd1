"""The plugin in this process, both sides, and what it says in the end."""

from __future__ import annotations

import contextlib
import importlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from otel_mcp_resume.plugin import Plugin, Providers
from otel_mcp_resume.rooms import ROOMS
from otel_mcp_resume.settings import Settings

__all__ = ["Said", "watching"]

ATTEMPTS = ("mcp_resume_attempts_total", ("stream", "outcome", "reason"))
VIOLATIONS = ("mcp_resume_violations_total", ("rule",))
UNDELIVERED = ("mcp_resume_undelivered_events_total", ("stream", "cause"))


class Said:
    """What the plugin has counted."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin

    def attempts(self, side: str) -> Counter[str]:
        return self._counts(side, *ATTEMPTS)

    def violations(self, side: str) -> Counter[str]:
        return self._counts(side, *VIOLATIONS)

    def undelivered(self) -> Counter[str]:
        return self._counts(None, *UNDELIVERED)

    def closed_streams(self, side: str) -> int:
        """Connections that the side knows to be over."""
        return self._counts(side, "mcp_resume_disconnects_total", ("stream",)).total()

    def faults(self) -> Counter[str]:
        return self._counts(None, "mcp_resume_internal_errors_total", ("hook",))

    def generations(self) -> set[str]:
        """Everything that a verdict took for the generation, before or after."""
        return {
            label
            for sample in self._samples(ATTEMPTS[0])
            if sample.value
            for label in (sample.labels["generation"], sample.labels["previous_generation"])
        }

    def _counts(self, side: str | None, name: str, labels: tuple[str, ...]) -> Counter[str]:
        found: Counter[str] = Counter()
        for sample in self._samples(name):
            if sample.value and side in (None, sample.labels.get("side")):
                found[" ".join(sample.labels[label] for label in labels)] += int(sample.value)
        return found

    def _samples(self, name: str) -> list[Any]:
        return [each for family in self._plugin.metrics.collect() for each in family.samples if each.name == name]


@contextlib.contextmanager
def watching(proof_timeout: float) -> Iterator[Said]:
    """All hooks are in place inside."""
    plugin = Plugin(Settings(prometheus_port=None, proof_timeout=proof_timeout), Providers())
    for room in ROOMS:
        importlib.import_module(room.module)
        plugin.open(room)
    try:
        yield Said(plugin)
    finally:
        plugin.close()

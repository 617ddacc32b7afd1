"""What the plugin reported, read from the `/metrics` of a process."""

from __future__ import annotations

import asyncio
import http.client
from collections import Counter
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

__all__ = ["UNDELIVERED", "Finding", "NoMetricsError", "read_findings"]

TIMEOUT = 3
"""Seconds for one look at `/metrics`."""

UNDELIVERED = "mcp_resume_undelivered_events_total"

TERMS = {
    "mcp_resume_attempts_total": ("outcome", "reason"),
    "mcp_resume_violations_total": ("rule",),
    UNDELIVERED: ("cause",),
}
"""The metrics that carry verdicts, and the labels that say which."""

FINE = {"proven", "rejected"}
"""Outcomes after which nothing is in doubt: evidence, or a refusal that everybody sees."""


class NoMetricsError(Exception):
    """A process has no `/metrics`, or none of the plugin's in it."""


@dataclass(frozen=True, order=True)
class Finding:
    """One verdict of one process."""

    process: str
    metric: str
    stream: str
    terms: tuple[str, ...]
    came_from: str = ""
    """The generation that the token of an attempt is of, if it is another one."""

    @property
    def fine(self) -> bool:
        """Whether it leaves nothing to do."""
        return self.terms[0] in FINE

    def __str__(self) -> str:
        undelivered = "undelivered, " if self.metric == UNDELIVERED else ""
        token = f", with a token of {self.came_from}" if self.came_from else ""
        return f"{self.process}: {undelivered}{', '.join(self.terms)}{token}"


async def read_findings(process: str, port: int) -> Counter[Finding]:
    """Every verdict that this process has reported, and how often.

    Raises:
        NoMetricsError: The plugin serves nothing there.
    """
    return _count(process, await asyncio.to_thread(_scrape, process, port))


def _scrape(process: str, port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException) as error:
        raise NoMetricsError(f"{process} serves no /metrics on port {port}: {error}") from error
    finally:
        connection.close()


def _count(process: str, text: str) -> Counter[Finding]:
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    if not any(sample.name == "mcp_resume_info" for sample in samples):
        raise NoMetricsError(f"{process} has no metrics of the plugin")
    counts = Counter[Finding]()
    for sample in samples:
        if sample.name in TERMS:
            terms = tuple(sample.labels[label] for label in TERMS[sample.name])
            before = sample.labels.get("previous_generation", "")
            came_from = before if before != sample.labels.get("generation") else ""
            found = Finding(process, sample.name, sample.labels.get("stream", ""), terms, came_from)
            counts[found] += int(sample.value)
    return +counts  # without the zeros

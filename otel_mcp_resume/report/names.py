"""The one table of names: every metric, label, attribute, span and record that leaves the process.

Dashboards, alerts and tests are checked against this file. A name here is public: renaming one breaks
somebody's alert.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from otel_mcp_resume.rules.terms import (
    Disconnect,
    DuplicateKind,
    Generation,
    Outcome,
    Reason,
    Side,
    Stream,
    UndeliveredCause,
    ViolationRule,
)

__all__ = ["LABEL_VALUES", "METRICS", "PREFIX", "Across", "MetricName"]

PREFIX: Final = "mcp_resume_"

Across = Literal["livesum", "livemax", "livemin"]
"""How the values of several worker processes become one; those of dead workers are left out."""


@dataclass(frozen=True, slots=True)
class MetricName:
    """One metric as `/metrics` shows it."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str
    across: Across | None = None
    """Gauges only."""
    buckets: tuple[float, ...] = ()
    """Histograms only: upper bounds in seconds, without the infinite one."""

    @property
    def otel_name(self) -> str:
        """The name over OTLP, which the usual translation turns into `name`."""
        return "mcp.resume." + self.name.removeprefix(PREFIX).removesuffix("_total").removesuffix("_seconds")

    @property
    def otel_unit(self) -> str:
        """The unit over OTLP: seconds, or none, so that the translation adds no suffix of its own."""
        return "s" if self.name.endswith("_seconds") else ""


_DOWNTIME: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0)
_VERDICT: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0, 60.0)

ATTEMPTS: Final = MetricName(
    "mcp_resume_attempts_total",
    "counter",
    ("side", "generation", "previous_generation", "stream", "outcome", "reason"),
    "Re-openings of a stream, counted when they settle, by verdict.",
)
VIOLATIONS: Final = MetricName(
    "mcp_resume_violations_total",
    "counter",
    ("side", "generation", "rule"),
    "Breaches of the boundary between streams, sessions and calls.",
)
UNDELIVERED: Final = MetricName(
    "mcp_resume_undelivered_events_total",
    "counter",
    ("generation", "stream", "cause"),
    "Messages of a server that can no longer reach the client.",
)
EVENTS: Final = MetricName(
    "mcp_resume_events_total",
    "counter",
    ("side", "generation", "stream"),
    "SSE messages on the wire, without comments and priming events.",
)
DUPLICATES: Final = MetricName(
    "mcp_resume_duplicate_events_total",
    "counter",
    ("side", "generation", "stream", "kind"),
    "Events whose id had been seen on their stream before.",
)
DISCONNECTS: Final = MetricName(
    "mcp_resume_disconnects_total",
    "counter",
    ("side", "generation", "stream", "cause"),
    "SSE connections that ended.",
)
OPEN_STREAMS: Final = MetricName(
    "mcp_resume_open_streams",
    "gauge",
    ("side", "generation", "stream"),
    "SSE connections that are open now.",
    "livesum",
)
OPEN_SESSIONS: Final = MetricName(
    "mcp_resume_open_sessions", "gauge", ("side", "generation"), "Sessions that are open now.", "livesum"
)
PENDING: Final = MetricName(
    "mcp_resume_pending_requests",
    "gauge",
    ("generation",),
    "Requests of a server to its clients that are not yet answered.",
    "livesum",
)
OLDEST_PENDING: Final = MetricName(
    "mcp_resume_oldest_pending_request_seconds",
    "gauge",
    ("generation",),
    "Age of the oldest unanswered request of a server to a client, 0 if there is none.",
    "livemax",
)
DOWNTIME: Final = MetricName(
    "mcp_resume_downtime_seconds",
    "histogram",
    ("side", "generation", "stream"),
    "Time from the end of a stream to its re-opening.",
    buckets=_DOWNTIME,
)
VERDICT: Final = MetricName(
    "mcp_resume_verdict_seconds",
    "histogram",
    ("side", "outcome"),
    "Time from the re-opening of a stream to the verdict on it.",
    buckets=_VERDICT,
)
EVICTIONS: Final = MetricName(
    "mcp_resume_ledger_evictions_total",
    "counter",
    ("side",),
    "Remembered ids or streams that were dropped to stay within the limit.",
)
INFO: Final = MetricName(
    "mcp_resume_info",
    "gauge",
    ("version", "mcp_version"),
    "Versions of otel-mcp-resume and of mcp, always 1.",
    "livemax",
)
HOOK_INSTALLED: Final = MetricName(
    "mcp_resume_hook_installed",
    "gauge",
    ("hook",),
    "1 if the patch is in place, 0 if what it should patch does not exist.",
    "livemin",
)
INTERNAL_ERRORS: Final = MetricName(
    "mcp_resume_internal_errors_total",
    "counter",
    ("hook",),
    "Faults of otel-mcp-resume itself, swallowed.",
)

METRICS: Final[tuple[MetricName, ...]] = (
    ATTEMPTS,
    VIOLATIONS,
    UNDELIVERED,
    EVENTS,
    DUPLICATES,
    DISCONNECTS,
    OPEN_STREAMS,
    OPEN_SESSIONS,
    PENDING,
    OLDEST_PENDING,
    DOWNTIME,
    VERDICT,
    EVICTIONS,
    INFO,
    HOOK_INSTALLED,
    INTERNAL_ERRORS,
)

LABEL_VALUES: Final[dict[str, frozenset[str]]] = {
    "side": frozenset(map(str, Side)),
    "generation": frozenset(map(str, Generation)),
    "previous_generation": frozenset(map(str, Generation)),
    "stream": frozenset(map(str, Stream)),
    "outcome": frozenset(map(str, Outcome)),
    "reason": frozenset(map(str, Reason)),
    "rule": frozenset(map(str, ViolationRule)),
    "cause": frozenset([*map(str, UndeliveredCause), *map(str, Disconnect)]),
    "kind": frozenset(map(str, DuplicateKind)),
}
"""What a label may say. `hook`, `version` and `mcp_version` are open, but bounded by the code and what is installed."""

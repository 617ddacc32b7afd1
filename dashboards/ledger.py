"""The server's account: what it wrote and what it did not, what it waits for, what came twice."""

from __future__ import annotations

from dashboards.frame import Section
from dashboards.health import SESSIONS, STREAM
from dashboards.links import trace_search, traces
from dashboards.looks import About, Look, Query
from dashboards.panels import lines
from dashboards.queries import count, idle, per_minute, select

__all__ = ["OLDEST", "UNDELIVERED", "VIOLATIONS", "ledger", "questions"]

UNDELIVERED = "mcp_resume_undelivered_events_total"
VIOLATIONS = "mcp_resume_violations_total"
OLDEST = "mcp_resume_oldest_pending_request_seconds"


def ledger() -> Section:
    """Messages written, undelivered, repeated and forgotten."""
    return "Ledger", [
        lines(
            About(
                "Messages written",
                "SSE messages a minute that servers wrote, by kind of stream.",
                "it never is. Silence here with undelivered messages beside it is a server that talks to nobody.",
                ("McpResumeEventsUndelivered",),
                STREAM,
            ),
            [
                Query(
                    idle(
                        per_minute("generation, stream", select("mcp_resume_events_total", 'side="server"')), "stream"
                    ),
                    "{{generation}} {{stream}}",
                )
            ],
            Look(unit="mpm"),
        ),
        lines(
            About(
                "Undelivered by cause",
                "Messages a minute that can no longer reach their client, and where they went missing.",
                "skipped: the server's replay is wrong. no_stream: no event store. session_ended: clients left, "
                "or were cut off.",
                ("McpResumeEventsUndelivered", "McpResumeNotResumable"),
                STREAM,
            ),
            [Query(idle(per_minute("stream, cause", select(UNDELIVERED)), "stream"), "{{stream}} {{cause}}")],
            Look(unit="mpm"),
        ),
        lines(
            About(
                "Events that came twice",
                "Events a minute whose id had been on the stream before: redelivered ones are harmless, "
                "collisions are not.",
                "a collision is another event under an old id. The server counts from the beginning after a restart.",
                ("McpResumeBoundaryViolated",),
                STREAM,
            ),
            [
                Query(
                    idle(per_minute("side, stream, kind", select("mcp_resume_duplicate_events_total")), "side"),
                    "{{side}} {{stream}} {{kind}}",
                )
            ],
            Look(unit="cpm"),
        ),
        lines(
            About(
                "Ledger evictions",
                "Ids and streams a minute that the plugin had to forget to stay within its limits.",
                "verdicts on what was forgotten are unproven. Raise OTEL_MCP_RESUME_MAX_STREAMS or _MAX_EVENTS, "
                "or end sessions.",
                ("McpResumeLedgerEvictions",),
                (traces("Evicted in traces", trace_search("mcp.resume", {"reason": "ledger_evicted"})),),
            ),
            [
                Query(
                    idle(per_minute("job, side", select("mcp_resume_ledger_evictions_total")), "job"),
                    "{{job}} {{side}}",
                )
            ],
            Look(unit="cpm"),
        ),
    ]


def questions() -> Section:
    """Requests of servers to clients, and calls that came twice."""
    return "Questions and calls", [
        lines(
            About(
                "Open questions over time",
                "Requests of servers to clients that are not yet answered.",
                "it never is. A staircase that only rises is a server whose questions get lost.",
                ("McpResumeServerRequestsPending",),
                SESSIONS,
            ),
            [
                Query(
                    idle(count("job, generation", select("mcp_resume_pending_requests")), "job"),
                    "{{job}} {{generation}}",
                )
            ],
            Look(decimals=0),
            width=8,
            table=True,
        ),
        lines(
            About(
                "Age of the oldest over time",
                "Age of the oldest of them. A person may take minutes to answer, a program does not.",
                "above ten minutes it was probably never delivered. End the session, or deliver it again.",
                ("McpResumeServerRequestsPending",),
                SESSIONS,
            ),
            [Query(idle(f"max by (job, generation) ({select(OLDEST)})", "job"), "{{job}} {{generation}}")],
            Look(unit="s"),
            width=8,
            table=True,
        ),
        lines(
            About(
                "Lost, repeated, twice",
                "Requests to clients that were lost or sent again without need, and calls that came a second "
                "time, a minute.",
                "pending_request_lost: a tool waits for ever. duplicate_call: a tool may have acted twice.",
                ("McpResumeServerRequestsLost", "McpResumeDuplicateCalls"),
                SESSIONS,
            ),
            [
                Query(
                    idle(
                        per_minute(
                            "side, rule",
                            select(VIOLATIONS, 'rule=~"duplicate_call|pending_request_lost|pending_request_repeated"'),
                        ),
                        "side",
                    ),
                    "{{side}} {{rule}}",
                )
            ],
            Look(unit="cpm"),
            width=8,
        ),
    ]

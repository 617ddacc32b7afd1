"""Migration: from one transport generation to the next without losing a stream."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.frame import Section, resumption_dashboard
from dashboards.links import label, trace_search, traces
from dashboards.looks import About, Look, Query
from dashboards.panels import lines, listing, number
from dashboards.queries import ACROSS, count, idle, in_range, per_minute, select, share

__all__ = ["board"]

ATTEMPTS = "mcp_resume_attempts_total"
CROSSING = tuple(select(ATTEMPTS, across) for across in ACROSS)
UNSAFE = tuple(select(ATTEMPTS, f'outcome=~"gap|unproven", {across}') for across in ACROSS)
SESSIONLESS = select(ATTEMPTS, 'reason=~"session_changed|session_not_found"')
STALE = select("mcp_resume_violations_total", 'rule="stale_session"')


def board() -> dashboard.Dashboard:
    """The dashboard."""
    return resumption_dashboard(
        "migration",
        "MCP resume / Migration",
        "Whether clients and servers can go on to another transport generation, or to a new release, without "
        "losing a stream.",
        [("At a glance", _verdict()), _generations(), _crossings(), _deploys()],
    )


def _crossing_traces(title: str, **conditions: str) -> tuple[dashboard.DashboardLink, ...]:
    search = trace_search("mcp.resume", {**conditions}, narrowed=("side",))
    return (traces(title, search),)


def _verdict() -> list[object]:
    old = select("mcp_resume_events_total", 'generation="sse"')
    return [
        number(
            About(
                "Can I go on?",
                "Streams in the time shown that were carried from one generation to another and lost events, or that "
                "nothing proves complete. 0: go on.",
                "stop the migration. Clients must not show a token of the old generation to the new one: let "
                "them initialize anew.",
                ("McpResumeUnsafeMigration",),
                _crossing_traces("Unsafe crossings in traces", outcome="gap|unproven"),
            ),
            idle(in_range("", *UNSAFE)),
            Look(unit="suffix: unsafe", decimals=0, red=0.5, mappings={"0": ("Yes: 0 unsafe", "green")}),
            width=9,
        ),
        number(
            About(
                "Crossings",
                "Streams in the time shown that ended on one generation and were re-opened on another, with any "
                "verdict.",
                "it never is. 0 during a migration means that clients begin anew, which is the safe way.",
                ("McpResumeUnsafeMigration",),
                _crossing_traces("Crossings in traces", reason="generation_changed"),
            ),
            idle(in_range("", *CROSSING)),
            Look(decimals=0),
            width=5,
        ),
        number(
            About(
                "Still on SSE",
                "Share of the messages in the time shown that went over the oldest generation, which is deprecated.",
                "it never is. It ends at 0 when the migration is done.",
                ("McpResumeUnsafeMigration",),
                (traces("Streams of HTTP+SSE in traces", trace_search("mcp.stream", {"generation": "sse"})),),
            ),
            idle(share(in_range("", old), in_range("", select("mcp_resume_events_total")))),
            Look(unit="percentunit", decimals=1),
            width=5,
        ),
        number(
            About(
                "Sessions lost",
                "Attempts in the time shown that found their session gone or replaced.",
                "a deploy moves every session once. If it goes on, clients reach instances that do not know "
                "them: sticky routing.",
                ("McpResumeSessionsChanging",),
                (traces("In traces", trace_search("mcp.resume", {"reason": "session_changed|session_not_found"})),),
            ),
            idle(in_range("", SESSIONLESS)),
            Look(decimals=0, amber=0.5, red=10),
            width=5,
        ),
    ]


def _generations() -> Section:
    generation = (traces("Streams in traces", trace_search("mcp.stream", {"generation": label("generation")})),)
    return "Generations over time", [
        lines(
            About(
                "Streams by generation",
                "SSE connections that are open now, by generation and side.",
                "it never is. The old generation should fall as the new one rises; the sum should not fall.",
                ("McpResumeUnsafeMigration",),
                generation,
            ),
            [
                Query(
                    idle(count("side, generation", select("mcp_resume_open_streams")), "side"),
                    "{{side}} {{generation}}",
                )
            ],
            Look(decimals=0),
            width=8,
            height=10,
            table=True,
        ),
        lines(
            About(
                "Sessions by generation",
                "Sessions that are open now. A stateless generation has none, so a fall may be progress.",
                "it never is. A drop that does not come back at a deploy is clients that did not initialize again.",
                ("McpResumeSessionsChanging",),
                generation,
            ),
            [
                Query(
                    idle(count("side, generation", select("mcp_resume_open_sessions")), "side"),
                    "{{side}} {{generation}}",
                )
            ],
            Look(decimals=0),
            width=8,
            height=10,
            table=True,
        ),
        lines(
            About(
                "Messages by generation",
                "SSE messages a minute, by generation, as servers and clients see them.",
                "it never is. It shows how far the migration has come.",
                ("McpResumeUnsafeMigration",),
                generation,
            ),
            [
                Query(
                    idle(per_minute("side, generation", select("mcp_resume_events_total")), "side"),
                    "{{side}} {{generation}}",
                )
            ],
            Look(unit="mpm"),
            width=8,
            height=10,
        ),
    ]


def _crossings() -> Section:
    labels = "previous_generation, generation, outcome, reason"
    return "Attempts across generations", [
        lines(
            About(
                "Crossings by verdict",
                "Attempts a minute whose token came from another generation.",
                "a gap lost events for certain, unproven may have. Stop the migration, and let clients "
                "initialize anew.",
                ("McpResumeUnsafeMigration",),
                _crossing_traces("These in traces", outcome=label("outcome")),
            ),
            [Query(idle(per_minute("outcome", *CROSSING), "outcome"), "{{outcome}}", exemplar=True)],
            Look(unit="cpm"),
            width=10,
        ),
        listing(
            About(
                "Crossings in the time shown",
                "From which generation to which, with which verdict. Only what happened is listed.",
                "the reason says what the new generation did with a token that it never issued.",
                ("McpResumeUnsafeMigration",),
                _crossing_traces("These in traces", reason="${__data.fields.reason}"),
            ),
            {"attempts": idle(f"{in_range(labels, *CROSSING)} > 0", "outcome")},
            ("previous_generation", "generation", "outcome", "reason"),
            "attempts",
            Look(decimals=0, amber=0.5),
            width=14,
            heads={"previous_generation": "from", "generation": "to"},
        ),
    ]


def _deploys() -> Section:
    return "Deploys", [
        lines(
            About(
                "Sessions gone or replaced",
                "Attempts a minute that found their session unknown (404) or answered by another one.",
                "a burst at a deploy is normal for rejected ones. What lasts, or is session_changed, is lost: "
                "drain and route by session.",
                ("McpResumeSessionsChanging", "McpResumeSilentGap"),
                (traces("These in traces", trace_search("mcp.resume", {"reason": label("reason")})),),
            ),
            [
                Query(
                    idle(per_minute("job, side, reason", SESSIONLESS), "job"),
                    "{{job}} {{side}} {{reason}}",
                    exemplar=True,
                )
            ],
            Look(unit="cpm"),
            width=8,
        ),
        lines(
            About(
                "Calls under a dead session",
                "Calls a minute under a session after the server had answered 404 to it.",
                "these clients never initialize again, so every call of theirs fails. Update or restart them.",
                ("McpResumeStaleSession",),
                (traces("Sessions of clients in traces", trace_search("mcp.session", {"side": "client"})),),
            ),
            [Query(idle(per_minute("job, generation", STALE), "job"), "{{job}} {{generation}}")],
            Look(unit="cpm"),
            width=8,
        ),
        lines(
            About(
                "Processes by version",
                "Processes by the release of the plugin and of mcp. A crossing of two lines is a deploy.",
                "it never is. Two versions for longer than a deploy takes is a rollout that got stuck.",
                ("McpResumeMetricsGone",),
                (traces("Sessions in traces", trace_search("mcp.session", {})),),
            ),
            [
                Query(
                    idle(count("version, mcp_version", select("mcp_resume_info")), "version"),
                    "plugin {{version}}, mcp {{mcp_version}}",
                )
            ],
            Look(decimals=0),
            width=8,
            table=True,
        ),
    ]

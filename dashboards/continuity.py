"""Continuity: is anything being lost, where, why, and since when."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.frame import Section, resumption_dashboard
from dashboards.links import label, trace_search, traces
from dashboards.looks import About, Look, Query
from dashboards.losses import ATTEMPTS, EVENT, FOREIGN, LOST, SKIPPED, where, why
from dashboards.panels import lines, number
from dashboards.queries import count, idle, in_range, per_minute, select, share

__all__ = ["board"]


def board() -> dashboard.Dashboard:
    """The dashboard."""
    return resumption_dashboard(
        "continuity",
        "MCP resume / Continuity",
        "Whether resumed MCP streams lose anything, where, why and since when.",
        [("At a glance", _glance()), why(), where(), _traffic()],
    )


def _glance() -> list[object]:
    attempts = select(ATTEMPTS)
    accepted = in_range("", select(ATTEMPTS, 'outcome=~"gap|proven|unproven"'))
    return [
        number(
            About(
                "Silent gaps",
                "Resumptions in the time shown that were accepted and lost events.",
                "the table below names service and reason. Follow the runbook by reason; roll back if it began "
                "with a deploy.",
                ("McpResumeSilentGap",),
                (traces("Gaps in traces", trace_search("mcp.resume", {"outcome": "gap"})),),
            ),
            idle(in_range("", select(ATTEMPTS, 'outcome="gap"'))),
            EVENT,
        ),
        number(
            About(
                "Foreign events",
                "Times that a client was given events of another session, or the answer to another request.",
                "treat it as a disclosure of data. Take the server out of service until its event store is keyed "
                "by session.",
                ("McpResumeCrossSessionDelivery",),
                (
                    traces(
                        "Foreign events in traces",
                        trace_search("mcp.resume", {"reason": "cross_session_replay|foreign_response"}),
                    ),
                ),
            ),
            idle(in_range("", FOREIGN)),
            EVENT,
        ),
        number(
            About(
                "Skipped",
                "Messages that servers never wrote although a later one of the same stream was written.",
                "no resumption brings them back. Close the window between replay and live in the server named below.",
                ("McpResumeEventsUndelivered",),
                (traces("Undelivered in traces", trace_search("mcp.resume", {"reason": "undelivered"})),),
            ),
            idle(in_range("", SKIPPED)),
            EVENT,
        ),
        number(
            About(
                "Streams given up",
                "Standalone and listen streams that clients do not re-open any more. Nothing the server sends on "
                "its own arrives.",
                "restart or reconnect those clients, then find out what kept the server away for longer than they try.",
                ("McpResumeStreamGivenUp",),
                (traces("Given up in traces", trace_search("mcp.resume", {"outcome": "abandoned"})),),
            ),
            idle(in_range("", select(ATTEMPTS, 'outcome="abandoned", stream=~"listen|standalone"'))),
            EVENT,
        ),
        number(
            About(
                "Continuity",
                "Share of the attempts that neither lost events nor gave up, without those of streams that loop. The "
                "optional objective is 99 %.",
                "the budget of the month is being spent. The losses beside this say on what.",
                ("McpResumeContinuityBudgetBurn",),
                (traces("Losses in traces", trace_search("mcp.resume", {"outcome": "abandoned|gap"})),),
            ),
            idle("1 - " + share(in_range("", LOST), in_range("", select(ATTEMPTS, 'reason!="reconnect_loop"')))),
            Look(unit="percentunit", decimals=1, below=0.99),
        ),
        number(
            About(
                "Unproven",
                "Share of the accepted resumptions for which there is no evidence that nothing was lost.",
                "look at the reasons below. Usually an event store is missing, or ids are opaque.",
                ("McpResumeUnprovenRatio", "McpResumeReconnectLoop"),
                (traces("Unproven in traces", trace_search("mcp.resume", {"outcome": "unproven"})),),
            ),
            idle(share(in_range("", select(ATTEMPTS, 'outcome="unproven"')), accepted)),
            Look(unit="percentunit", decimals=0, amber=0.25, red=0.5),
        ),
        number(
            About(
                "Attempts",
                "How many streams were re-opened in the time shown, with any verdict.",
                "it never is. Far more than usual means that connections are cut: see the disconnects on the "
                "server's dashboard.",
                ("McpResumeReconnectLoop",),
                (traces("All attempts in traces", trace_search("mcp.resume", {})),),
            ),
            idle(in_range("", attempts)),
            Look(decimals=0),
        ),
        number(
            About(
                "Reporting",
                "Processes that expose these metrics. Zeros elsewhere mean something only if this is what you expect.",
                "the plugin is on nowhere, or nothing is scraped. Run `otel-mcp-resume doctor` where it should be.",
                ("McpResumeNoData", "McpResumeMetricsGone"),
                (traces("Sessions in traces", trace_search("mcp.session", {})),),
            ),
            idle(count("", select("mcp_resume_info"))),
            Look(decimals=0, below=1),
        ),
    ]


def _traffic() -> Section:
    session = (traces("Sessions in traces", trace_search("mcp.session", {"side": label("side")})),)
    stream = (
        traces("Streams in traces", trace_search("mcp.stream", {"side": label("side"), "stream": label("stream")})),
    )
    return "Sessions and streams", [
        lines(
            About(
                "Open sessions",
                "Sessions that are open now. A stateless generation has none.",
                "it never is. A step to 0 and back is a restart; a slow rise is clients that never end their sessions.",
                ("McpResumeSessionsChanging",),
                session,
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
                "Open streams",
                "SSE connections that are open now.",
                "it never is. Fewer standalone streams than sessions means that clients do not listen to their server.",
                ("McpResumeStreamGivenUp",),
                stream,
            ),
            [Query(idle(count("side, stream", select("mcp_resume_open_streams")), "side"), "{{side}} {{stream}}")],
            Look(decimals=0),
            width=8,
            height=10,
            table=True,
        ),
        lines(
            About(
                "Messages",
                "SSE messages a minute on the wire, without comments and priming events.",
                "it never is. Silence while streams are open is worth a look at the server.",
                ("McpResumeEventsUndelivered",),
                stream,
            ),
            [Query(idle(per_minute("side, stream", select("mcp_resume_events_total")), "side"), "{{side}} {{stream}}")],
            Look(unit="mpm"),
            width=8,
            height=10,
        ),
    ]

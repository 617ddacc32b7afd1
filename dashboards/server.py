"""Server: what was written and what was not, what waits, what came twice, and whether the plugin sees it all."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.frame import resumption_dashboard
from dashboards.health import FAULTS, HOOKS, SESSIONS, connections, plugin
from dashboards.ledger import OLDEST, UNDELIVERED, VIOLATIONS, ledger, questions
from dashboards.links import trace_search, traces
from dashboards.looks import About, Look
from dashboards.panels import number
from dashboards.queries import count, idle, in_range, select

__all__ = ["board"]

EVENT = Look(decimals=0, red=0.5)


def board() -> dashboard.Dashboard:
    """The dashboard."""
    return resumption_dashboard(
        "server",
        "MCP resume / Server",
        "What servers wrote and did not write, what they wait for, what came twice, and whether the plugin sees "
        "it all.",
        [("At a glance", _glance()), ledger(), questions(), connections(), plugin()],
    )


def _glance() -> list[object]:
    undelivered = (traces("Undelivered in traces", trace_search("mcp.resume", {"reason": "undelivered"})),)
    return [
        number(
            About(
                "Skipped",
                "Messages in the time shown that were never written although a later one of the stream was.",
                "close the window between the end of a replay and the return to live in this server.",
                ("McpResumeEventsUndelivered",),
                undelivered,
            ),
            idle(in_range("", select(UNDELIVERED, 'cause="skipped"'))),
            EVENT,
        ),
        number(
            About(
                "Lost answers",
                "Messages on calls in the time shown that had no stream to go to, or were left when their "
                "session ended.",
                "a few are clients that went away. Many: give the server an event store, so that calls outlive a cut.",
                ("McpResumeEventsUndelivered",),
                undelivered,
            ),
            idle(in_range("", select(UNDELIVERED, 'cause=~"no_stream|session_ended", stream=~"request|session"'))),
            Look(decimals=0, amber=0.5, red=10),
        ),
        number(
            About(
                "Lost questions",
                "Requests of servers to clients in the time shown that were never delivered, or never answered.",
                "tools wait for these answers. Deliver pending requests again when a session resumes; give "
                "questions a timeout.",
                ("McpResumeServerRequestsLost",),
                SESSIONS,
            ),
            idle(in_range("", select(VIOLATIONS, 'rule="pending_request_lost"'))),
            Look(decimals=0, amber=0.5, red=5),
        ),
        number(
            About(
                "Duplicate calls",
                "Tools that were called again in the time shown because the first answer was lost.",
                "what the tool does may have been done twice. Make it idempotent, and keep answers in an event store.",
                ("McpResumeDuplicateCalls",),
                SESSIONS,
            ),
            idle(in_range("", select(VIOLATIONS, 'rule="duplicate_call"'))),
            EVENT,
        ),
        number(
            About(
                "Oldest question",
                "Age of the oldest request of a server to a client without an answer.",
                "it may never have been delivered. Find the session in the traces, and end it if nobody is there.",
                ("McpResumeServerRequestsPending",),
                SESSIONS,
            ),
            idle(f"max by () ({select(OLDEST)})"),
            Look(unit="s", decimals=0, amber=300, red=600),
        ),
        number(
            About(
                "Open questions",
                "Requests of servers to clients that are not yet answered.",
                "it never is. If it only rises, answers do not come back: see the age beside this.",
                ("McpResumeServerRequestsPending",),
                SESSIONS,
            ),
            idle(count("", select("mcp_resume_pending_requests"))),
            Look(decimals=0),
        ),
        number(
            About(
                "Hooks missing",
                "Patches that are not in place, over all processes. What they should see is unseen.",
                "run `otel-mcp-resume doctor` there. The installed mcp may be newer than the plugin.",
                ("McpResumePluginBlind",),
                SESSIONS,
            ),
            idle(f"count by () ({select(HOOKS)} == 0)"),
            EVENT,
        ),
        number(
            About(
                "Plugin faults",
                "Errors inside the plugin in the time shown. They were swallowed: the application is not affected.",
                "counts are incomplete from then on. The log of that process (logger otel_mcp_resume.plugin) has "
                "the traceback.",
                ("McpResumePluginFaulty",),
                SESSIONS,
            ),
            idle(in_range("", select(FAULTS))),
            EVENT,
        ),
    ]

"""Server: what was written and what was not, what waits, what came twice, and whether the plugin sees it all."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.frame import Section, resumption_dashboard
from dashboards.links import label, trace_search, traces
from dashboards.panels import About, Look, Query, buckets, lines, number, states
from dashboards.queries import count, everything, idle, in_range, per_minute, quantile, select

__all__ = ["board"]

UNDELIVERED = "mcp_resume_undelivered_events_total"
VIOLATIONS = "mcp_resume_violations_total"
OLDEST = "mcp_resume_oldest_pending_request_seconds"
HOOKS = "mcp_resume_hook_installed"
FAULTS = "mcp_resume_internal_errors_total"
EVENT = Look(decimals=0, red=0.5)
STREAM = (traces("Streams in traces", trace_search("mcp.stream", {"stream": label("stream")})),)
SESSIONS = (traces("Sessions of servers in traces", trace_search("mcp.session", {"side": "server"})),)


def board() -> dashboard.Dashboard:
    """The dashboard."""
    return resumption_dashboard(
        "server",
        "MCP resume / Server",
        "What servers wrote and did not write, what they wait for, what came twice, and whether the plugin sees it all.",
        [("At a glance", _glance()), _ledger(), _requests(), _connections(), _plugin()],
    )


def _glance() -> list[object]:
    undelivered = (traces("Undelivered in traces", trace_search("mcp.resume", {"reason": "undelivered"})),)
    return [
        number(
            About(
                "Skipped messages",
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
                "Messages on calls in the time shown that had no stream to go to, or were left when their session ended.",
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
                "tools wait for these answers. Deliver pending requests again when a session resumes; give questions a timeout.",
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
                "Oldest open question",
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
                "Faults of the plugin",
                "Errors inside the plugin in the time shown. They were swallowed: the application is not affected.",
                "counts are incomplete from then on. The log of that process (logger otel_mcp_resume.plugin) has the traceback.",
                ("McpResumePluginFaulty",),
                SESSIONS,
            ),
            idle(in_range("", select(FAULTS))),
            EVENT,
        ),
    ]


def _ledger() -> Section:
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
                    idle(per_minute("generation, stream", select("mcp_resume_events_total", 'side="server"')), "stream"),
                    "{{generation}} {{stream}}",
                )
            ],
            Look(unit="mpm"),
        ),
        lines(
            About(
                "Undelivered by cause",
                "Messages a minute that can no longer reach their client, and where they went missing.",
                "skipped: the server's replay is wrong. no_stream: no event store. session_ended: clients left, or were cut off.",
                ("McpResumeEventsUndelivered",),
                STREAM,
            ),
            [Query(idle(per_minute("stream, cause", select(UNDELIVERED)), "stream"), "{{stream}} {{cause}}")],
            Look(unit="mpm"),
        ),
        lines(
            About(
                "Events that came twice",
                "Events a minute whose id had been on the stream before: redelivered ones are harmless, collisions are not.",
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
                "verdicts on what was forgotten are unproven. Raise OTEL_MCP_RESUME_MAX_STREAMS or _MAX_EVENTS, or end sessions.",
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


def _requests() -> Section:
    return "Questions and calls", [
        lines(
            About(
                "Open questions",
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
        ),
        lines(
            About(
                "Oldest open question",
                "Age of the oldest of them. A person may take minutes to answer, a program does not.",
                "above ten minutes it was probably never delivered. End the session, or deliver it again.",
                ("McpResumeServerRequestsPending",),
                SESSIONS,
            ),
            [Query(idle(f"max by (job, generation) ({select(OLDEST)})", "job"), "{{job}} {{generation}}")],
            Look(unit="s"),
            width=8,
        ),
        lines(
            About(
                "Lost, repeated, twice",
                "Requests to clients that were lost or sent again without need, and calls that came a second time, a minute.",
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


def _connections() -> Section:
    downtime, verdict = "mcp_resume_downtime_seconds", "mcp_resume_verdict_seconds"
    attempts = (traces("Attempts in traces", trace_search("mcp.resume", {"stream": label("stream")})),)
    return "Disconnects, downtime and verdict times", [
        lines(
            About(
                "Disconnects by cause",
                "Connections a minute that ended. completed is how it should be; closed, reset and cancelled were cut.",
                "reset at even distances is a proxy's idle timeout: keep alive below it. closed in bursts is a deploy: drain.",
                ("McpResumeReconnectLoop", "McpResumeStreamGivenUp"),
                STREAM,
            ),
            [
                Query(
                    idle(per_minute("side, stream, cause", select("mcp_resume_disconnects_total")), "side"),
                    "{{side}} {{stream}} {{cause}}",
                )
            ],
            Look(unit="cpm"),
        ),
        lines(
            About(
                "Downtime (95 % are shorter)",
                "From the end of a stream to its re-opening, by kind of stream. 0 where nothing was re-opened.",
                "events wait for so long, and a store must keep them for longer. Seconds come from the server's retry interval.",
                ("McpResumeStreamGivenUp",),
                attempts,
            ),
            [Query(idle(quantile(0.95, "side, stream", downtime), "side"), "{{side}} {{stream}}", exemplar=True)],
            Look(unit="s"),
        ),
        buckets(
            About(
                "Downtime",
                "How long streams were down, over time. Brighter is more often.",
                "it never is. A bright line at a round number is a timeout somewhere between client and server.",
                ("McpResumeStreamGivenUp",),
                (traces("Attempts in traces", trace_search("mcp.resume", {})),),
            ),
            idle(everything("le", select(f"{downtime}_bucket")), "le"),
            Look(unit="s"),
        ),
        lines(
            About(
                "Time to a verdict (95 % are faster)",
                "From the re-opening of a stream to the verdict on it. 0 where there was none.",
                "proven ones take less than a second where events flow. Those at the proof timeout had no evidence at all.",
                ("McpResumeUnprovenRatio",),
                (traces("These in traces", trace_search("mcp.resume", {"outcome": label("outcome")})),),
            ),
            [Query(idle(quantile(0.95, "outcome", verdict), "outcome"), "{{outcome}}", exemplar=True)],
            Look(unit="s"),
        ),
    ]


def _plugin() -> Section:
    return "Health of the plugin", [
        states(
            About(
                "Hooks",
                "Whether each patch is in place in every process. A hook of a part of mcp that is not used is not listed.",
                "what this hook should see is unseen, so zeros prove nothing. Run `otel-mcp-resume doctor` in that process.",
                ("McpResumePluginBlind",),
                SESSIONS,
            ),
            Query(idle(f"min by (hook) ({select(HOOKS)})", "hook"), "{{hook}}"),
            Look(decimals=0, below=1, mappings={"0": ("missing", "red"), "1": ("in place", "green")}),
            width=12,
            height=10,
        ),
        lines(
            About(
                "Faults of the plugin",
                "Errors inside the plugin a minute, by the place where they were swallowed.",
                "please report it with the traceback from the log. Until then, counts of that hook are too low.",
                ("McpResumePluginFaulty",),
                SESSIONS,
            ),
            [Query(idle(per_minute("job, hook", select(FAULTS)), "job"), "{{job}} {{hook}}")],
            Look(unit="cpm"),
            height=5,
        ),
        lines(
            About(
                "Processes reporting",
                "Processes that expose these metrics, for each service.",
                "a service at 0 is blind. Compare with the number of its instances.",
                ("McpResumeMetricsGone", "McpResumeNoData"),
                SESSIONS,
            ),
            [Query(idle(count("job", select("mcp_resume_info")), "job"), "{{job}}")],
            Look(decimals=0),
            height=5,
        ),
    ]

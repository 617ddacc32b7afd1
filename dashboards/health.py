"""Health: of the connections, and of the plugin that watches them."""

from __future__ import annotations

from dashboards.frame import Section
from dashboards.links import label, trace_search, traces
from dashboards.looks import About, Look, Query
from dashboards.panels import buckets, lines, states
from dashboards.queries import count, everything, idle, per_minute, quantile, select

__all__ = ["FAULTS", "HOOKS", "SESSIONS", "STREAM", "connections", "plugin"]

HOOKS = "mcp_resume_hook_installed"
FAULTS = "mcp_resume_internal_errors_total"
STREAM = (traces("Streams in traces", trace_search("mcp.stream", {"stream": label("stream")})),)
SESSIONS = (traces("Sessions of servers in traces", trace_search("mcp.session", {"side": "server"})),)


def connections() -> Section:
    """How connections end, how long streams are down, and how long a verdict takes."""
    downtime, verdict = "mcp_resume_downtime_seconds", "mcp_resume_verdict_seconds"
    attempts = (traces("Attempts in traces", trace_search("mcp.resume", {"stream": label("stream")})),)
    return "Disconnects, downtime and verdict times", [
        lines(
            About(
                "Disconnects by cause",
                "Connections a minute that ended. completed is how it should be; closed, reset and cancelled were cut.",
                "reset at even distances is a proxy's idle timeout: keep alive below it. closed in bursts is a "
                "deploy: drain.",
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
            height=10,
        ),
        lines(
            About(
                "Downtime (95 % are shorter)",
                "From the end of a stream to its re-opening, by kind of stream. 0 where nothing was re-opened.",
                "events wait for so long, and a store must keep them for longer. Seconds come from the server's "
                "retry interval.",
                ("McpResumeStreamGivenUp",),
                attempts,
            ),
            [Query(idle(quantile(0.95, "side, stream", downtime), "side"), "{{side}} {{stream}}", exemplar=True)],
            Look(unit="s"),
            height=10,
        ),
        buckets(
            About(
                "Downtime, all of it",
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
                "proven ones take less than a second where events flow. Those at the proof timeout had no "
                "evidence at all.",
                ("McpResumeUnprovenRatio",),
                (traces("These in traces", trace_search("mcp.resume", {"outcome": label("outcome")})),),
            ),
            [Query(idle(quantile(0.95, "outcome", verdict), "outcome"), "{{outcome}}", exemplar=True)],
            Look(unit="s"),
        ),
    ]


def plugin() -> Section:
    """Whether the plugin sees what it should."""
    return "Health of the plugin", [
        lines(
            About(
                "Faults by hook",
                "Errors inside the plugin a minute, by the place where they were swallowed.",
                "please report it with the traceback from the log. Until then, counts of that hook are too low.",
                ("McpResumePluginFaulty",),
                SESSIONS,
            ),
            [Query(idle(per_minute("job, hook", select(FAULTS)), "job"), "{{job}} {{hook}}")],
            Look(unit="cpm"),
            height=6,
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
            height=6,
        ),
        states(
            About(
                "Hooks",
                "Whether each patch is in place in every process. A hook of a part of mcp that is not used is "
                "not listed.",
                "what this hook should see is unseen, so zeros prove nothing. Run `otel-mcp-resume doctor` in "
                "that process.",
                ("McpResumePluginBlind",),
                SESSIONS,
            ),
            Query(idle(f"min by (hook) ({select(HOOKS)})", "hook"), "{{hook}}"),
            Look(decimals=0, below=1, mappings={"0": ("missing", "red"), "1": ("in place", "green")}),
            width=24,
            height=10,
        ),
    ]

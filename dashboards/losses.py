"""Losses: when, for which reason, and in which service."""

from __future__ import annotations

from dashboards.frame import Section
from dashboards.links import label, trace_search, traces
from dashboards.looks import About, Look, Query
from dashboards.panels import amounts, lines, listing, states
from dashboards.queries import everything, idle, in_range, per_minute, select

__all__ = ["ATTEMPTS", "EVENT", "FOREIGN", "LOST", "SKIPPED", "where", "why"]

ATTEMPTS = "mcp_resume_attempts_total"
LOST = select(ATTEMPTS, 'outcome=~"abandoned|gap"')
SKIPPED = select("mcp_resume_undelivered_events_total", 'cause="skipped"')
FOREIGN = select("mcp_resume_violations_total", 'rule=~"cross_session_replay|foreign_response"')
EVENT = Look(decimals=0, red=0.5)
"""One is too many."""


def why() -> Section:
    """Verdicts by reason, and when something was lost."""
    return "Why, and since when", [
        states(
            About(
                "Losing events",
                "For each service, when it lost something: a gap, a stream given up, a skipped message, or a "
                "foreign event.",
                "note when it began, and compare with the blue marks, which are processes that started: a deploy.",
                ("McpResumeSilentGap", "McpResumeStreamGivenUp"),
                (traces("Losses in traces", trace_search("mcp.resume", {"outcome": "abandoned|gap"})),),
            ),
            Query(idle(f"({everything('job', LOST, SKIPPED, FOREIGN)}) > bool 0", "job"), "{{job}}"),
            Look(decimals=0, red=1, mappings={"0": ("loses nothing", "green"), "1": ("loses events", "red")}),
        ),
        lines(
            About(
                "Verdicts",
                "Attempts a minute by outcome. A dot is one attempt and leads to its trace.",
                "red (gap) and purple (abandoned) are losses: look at their reasons beside this. Yellow is doubt.",
                ("McpResumeSilentGap", "McpResumeUnprovenRatio"),
                (traces("These in traces", trace_search("mcp.resume", {"outcome": label("outcome")})),),
            ),
            [Query(idle(per_minute("outcome", select(ATTEMPTS)), "outcome"), "{{outcome}}", exemplar=True)],
            Look(unit="cpm"),
            stacked=True,
        ),
        lines(
            About(
                "Losses by reason",
                "Gaps and streams given up a minute, by the reason and the side that saw it.",
                "the reason leads to the cause: the runbook has a table of reasons and what to change for each.",
                ("McpResumeSilentGap", "McpResumeStreamGivenUp"),
                (
                    traces(
                        "These in traces",
                        trace_search("mcp.resume", {"reason": label("reason"), "side": label("side")}),
                    ),
                ),
            ),
            [Query(idle(per_minute("side, reason", LOST), "side"), "{{side}} {{reason}}", exemplar=True)],
            Look(unit="cpm"),
        ),
        lines(
            About(
                "Doubts and refusals by reason",
                "Attempts a minute that were unproven, rejected or failed. Refusals are loud, and therefore safe.",
                "many reconnect_loop: a server accepts tokens that it has forgotten. no_event_store, "
                "no_event_ids: it cannot resume.",
                ("McpResumeUnprovenRatio", "McpResumeReconnectLoop", "McpResumeNotResumable"),
                (
                    traces(
                        "These in traces",
                        trace_search("mcp.resume", {"reason": label("reason"), "side": label("side")}),
                    ),
                ),
            ),
            [
                Query(
                    idle(
                        per_minute("side, outcome, reason", select(ATTEMPTS, 'outcome=~"failed|rejected|unproven"')),
                        "side",
                    ),
                    "{{side}} {{outcome}} {{reason}}",
                    exemplar=True,
                )
            ],
            Look(unit="cpm"),
            height=9,
        ),
        lines(
            About(
                "Breaches of the boundary",
                "Violations a minute, by rule: what no correct server or client does, attempt or not.",
                "cross_session_replay and foreign_response are a disclosure of data. For the rest see the "
                "runbook of the rule.",
                ("McpResumeCrossSessionDelivery", "McpResumeBoundaryViolated", "McpResumeStaleSession"),
                (traces("Sessions of that side in traces", trace_search("mcp.session", {"side": label("side")})),),
            ),
            [Query(idle(per_minute("side, rule", select("mcp_resume_violations_total")), "side"), "{{side}} {{rule}}")],
            Look(unit="cpm"),
            height=9,
        ),
    ]


def where() -> Section:
    """Losses and verdicts by service and stream."""
    columns = {
        outcome: in_range("job, side, generation, stream", select(ATTEMPTS, f'outcome="{outcome}"'))
        for outcome in ("gap", "abandoned", "unproven", "rejected", "failed", "proven")
    }
    first, *others = columns
    return "Where", [
        amounts(
            About(
                "Losses by service",
                "Gaps and streams given up, skipped messages and foreign events in the time shown, for each service.",
                "choose the service above, and read the table beside this.",
                ("McpResumeSilentGap", "McpResumeEventsUndelivered"),
                (traces("Losses in traces", trace_search("mcp.resume", {"outcome": "abandoned|gap"})),),
            ),
            Query(idle(in_range("job", LOST, SKIPPED, FOREIGN), "job"), "{{job}}"),
            EVENT,
            width=6,
        ),
        listing(
            About(
                "Verdicts by service and stream",
                "How many attempts came to which verdict in the time shown. A number leads to its traces.",
                "the row says which service, side and kind of stream loses events; choose it above to see when.",
                ("McpResumeSilentGap", "McpResumeStreamGivenUp"),
                (
                    traces(
                        "Attempts in traces",
                        trace_search(
                            "mcp.resume",
                            {
                                "side": "${__data.fields.side}",
                                "generation": "${__data.fields.generation}",
                                "stream": "${__data.fields.stream}",
                            },
                        ),
                    ),
                ),
            ),
            {first: idle(columns[first], "job"), **{name: columns[name] for name in others}},
            ("job", "side", "generation", "stream"),
            "gap",
            EVENT,
            width=18,
        ),
    ]

"""What all three dashboards share: variables, links, time, and the order of rows and panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from dashboards.links import siblings
from dashboards.panels import SOURCE
from dashboards.queries import select
from otel_mcp_resume.rules.terms import Generation, Side

__all__ = ["Section", "new_processes", "resumption_dashboard"]

Section = tuple[str, Sequence[Any]]
"""The title of a row, and the builders of its panels."""

ALL = VariableOption(text="All", value="$__all", selected=True)


def resumption_dashboard(name: str, title: str, about: str, sections: Sequence[Section]) -> dashboard.Dashboard:
    """A dashboard with the uid `mcp-resume-NAME`."""
    board = (
        dashboard.Dashboard(title)
        .uid(f"mcp-resume-{name}")
        .description(about)
        .tags(["mcp-resume"])
        .readonly()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .time("now-1h", "now")
        .refresh("30s")
        .timezone("browser")
        .link(siblings())
        .annotation(new_processes())
    )
    for variable in _variables():
        board = board.with_variable(variable)
    for row, panels in sections:
        board = board.with_row(dashboard.Row(row))
        for panel in panels:
            board = board.with_panel(panel)
    return board


def new_processes() -> dashboard.AnnotationQuery:
    """Marks the time at which processes appeared: a deploy, or a restart."""
    here = select("mcp_resume_info")
    expr = f"count by (job) ({here} unless {here} offset 2m)"
    return (
        dashboard.AnnotationQuery()
        .name("New processes")
        .datasource(SOURCE)
        .enable(True)  # noqa: FBT003 - the builder's signature
        .icon_color("blue")
        .expr(expr)
        .step("30s")
        .title_format("{{job}}: processes started")
    )


def _variables() -> list[Any]:
    info = "mcp_resume_info"
    return [
        dashboard.DatasourceVariable("datasource").label("Metrics").type("prometheus"),
        dashboard.DatasourceVariable("traces").label("Traces").type("tempo"),
        _from_metrics("job", "Service", f"label_values({info}, job)"),
        _from_metrics("instance", "Instance", f'label_values({info}{{job=~"$job"}}, instance)'),
        _fixed("side", "Side", [str(side) for side in Side]),
        _fixed("generation", "Generation", [str(generation) for generation in Generation]),
    ]


def _from_metrics(name: str, label: str, query: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query({"query": query, "refId": name})
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)  # noqa: FBT003
        .include_all(True)  # noqa: FBT003
        .all_value(".*")
        .current(ALL)
    )


def _fixed(name: str, label: str, values: Sequence[str]) -> dashboard.CustomVariable:
    return (
        dashboard.CustomVariable(name)
        .label(label)
        .values(",".join(values))
        .multi(True)  # noqa: FBT003
        .include_all(True)  # noqa: FBT003
        .all_value(".*")
        .current(ALL)
        .options([ALL, *(VariableOption(text=value, value=value, selected=False) for value in values)])
    )

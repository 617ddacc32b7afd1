"""Where a panel leads: to the spans of what it shows, and to the runbook that says what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from urllib.parse import quote

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models.dashboard import DashboardLinkType

__all__ = ["RUNBOOKS", "label", "runbook", "siblings", "trace_search", "traces"]

RUNBOOKS = "https://github.com/otel-mcp-resume/otel-mcp-resume/blob/main/alerts/runbooks"
"""What the alerts' `runbook_url` begins with, too."""

_VARIABLE = re.compile(r"(\$\{[^}]+\})")


def label(name: str) -> str:
    """The value of a label of the series that was clicked."""
    return "${__field.labels." + name + "}"


def trace_search(span: str, conditions: Mapping[str, str], narrowed: tuple[str, ...] = ("side", "generation")) -> str:
    """TraceQL for spans of that name, narrowed by the variables of the dashboard."""
    terms = [f'name = "{span}"']
    terms += [f'span.mcp.resume.{name} = "{value}"' for name, value in conditions.items() if "|" not in value]
    terms += [f'span.mcp.resume.{name} =~ "{value}"' for name, value in conditions.items() if "|" in value]
    terms += [f'span.mcp.resume.{name} =~ "${{{name}:pipe}}"' for name in narrowed if name not in conditions]
    return "{ " + " && ".join(terms) + " }"


def traces(title: str, search: str) -> dashboard.DashboardLink:
    """A link from a value to the trace search in Grafana's explorer, over the time that is shown."""
    source = {"type": "tempo", "uid": "${traces}"}
    query = {"refId": "A", "datasource": source, "queryType": "traceql", "tableType": "spans", "query": search}
    pane = {"datasource": "${traces}", "queries": [query], "range": {"from": "${__from}", "to": "${__to}"}}
    parts = _VARIABLE.split(json.dumps({"resumptions": pane}, separators=(",", ":")))
    encoded = "".join(part if _VARIABLE.fullmatch(part) else quote(part, safe="") for part in parts)
    return _link(title, f"/explore?schemaVersion=1&orgId=1&panes={encoded}")


def runbook(name: str, base: str = RUNBOOKS) -> dashboard.DashboardLink:
    """A link to the runbook of the alert `name`."""
    return _link(f"Runbook {name}", f"{base}/{name}.md")


def siblings() -> dashboard.DashboardLink:
    """The other dashboards of this set, with the same choice of time and services."""
    return (
        dashboard.DashboardLink("MCP resume")
        .type(DashboardLinkType.DASHBOARDS)
        .tags(["mcp-resume"])
        .include_vars(True)  # noqa: FBT003 - the builder's signature
        .keep_time(True)  # noqa: FBT003
    )


def _link(title: str, url: str) -> dashboard.DashboardLink:
    return dashboard.DashboardLink(title).type(DashboardLinkType.LINK).url(url).target_blank(True)  # noqa: FBT003

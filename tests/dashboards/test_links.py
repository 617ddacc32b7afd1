"""Where a person gets from a panel: to the runbook that says what to do, and to the spans behind the numbers."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from otel_mcp_resume.report import fields
from otel_mcp_resume.report.names import LABEL_VALUES

SPANS = {fields.SPAN_RESUME, fields.SPAN_STREAM, fields.SPAN_SESSION}
CONDITION = re.compile(r'([\w.]+) (=|=~) "([^"]*)"')


def of_values(panel: Any) -> Iterator[dict[str, Any]]:
    yield from panel.raw["fieldConfig"]["defaults"]["links"]
    for override in panel.raw["fieldConfig"]["overrides"]:
        for change in override["properties"]:
            if change["id"] == "links":
                yield from change["value"]


def explored(link: dict[str, Any]) -> dict[str, Any]:
    """What Grafana's explorer is asked to show."""
    path, _, query = link["url"].partition("?")
    assert path == "/explore"
    asked = urllib.parse.parse_qs(query, strict_parsing=True)
    (pane,) = json.loads(asked["panes"][0]).values()
    assert isinstance(pane, dict)
    return pane


def test_every_panel_leads_to_runbooks_that_are_there(panel: Any, directory: Path) -> None:
    links = panel.raw["links"]
    assert links
    for link in links:
        base, _, name = link["url"].rpartition("/")
        assert base == "https://github.com/otel-mcp-resume/otel-mcp-resume/blob/main/alerts/runbooks"
        assert (directory.parent / "alerts" / "runbooks" / name).is_file()
        assert link["title"] == f"Runbook {name.removesuffix('.md')}"


def test_the_runbooks_are_where_the_alerts_say(directory: Path) -> None:
    rules = yaml.safe_load((directory.parent / "alerts" / "mcp-resume.alerts.yml").read_text())
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    bases = {alert["annotations"]["runbook_url"].rpartition("/")[0] for alert in alerts}
    assert bases == {"https://github.com/otel-mcp-resume/otel-mcp-resume/blob/main/alerts/runbooks"}


def test_every_alert_has_a_panel(all_boards: Any, directory: Path) -> None:
    """On the dashboard that the alert links to, a panel leads back to its runbook."""
    for path in directory.parent.glob("alerts/mcp-resume.*.yml"):
        for rule in (rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]):
            if "alert" not in rule:
                continue
            found = re.search(r"/d/([\w-]+)", rule["annotations"]["dashboard_url"])
            assert found
            board = all_boards[found[1]]
            names = {link["title"] for panel in board["panels"] for link in panel.get("links", [])}
            assert f"Runbook {rule['alert']}" in names


def test_every_value_leads_to_spans_over_the_time_that_is_shown(panel: Any) -> None:
    links = list(of_values(panel))
    assert links
    for link in links:
        pane = explored(link)
        assert pane["datasource"] == "${traces}"
        assert pane["range"] == {"from": "${__from}", "to": "${__to}"}
        (query,) = pane["queries"]
        assert query["datasource"] == {"type": "tempo", "uid": "${traces}"}
        assert query["queryType"] == "traceql"


def test_traceql_asks_for_spans_attributes_and_values_that_exist(panel: Any) -> None:
    for link in of_values(panel):
        query = explored(link)["queries"][0]["query"]
        assert query.startswith("{ ")
        assert query.endswith(" }")
        first, *conditions = query[2:-2].split(" && ")
        assert first.removeprefix("name = ").strip('"') in SPANS
        for condition in conditions:
            found = CONDITION.fullmatch(condition)
            assert found, condition
            attribute = found[1].removeprefix("span.")
            assert attribute in fields.ATTRIBUTES
            label = attribute.removeprefix("mcp.resume.")
            if found[3].startswith("${"):
                assert label in found[3]  # the variable, or the label of what was clicked, by the same name
            else:
                assert set(found[3].split("|")) <= LABEL_VALUES[label]


def test_labels_that_a_link_takes_from_a_value_are_there(panel: Any) -> None:
    for link in of_values(panel):
        taken = set(re.findall(r"\$\{__field\.labels\.(\w+)\}", link["url"]))
        columns = set(re.findall(r"\$\{__data\.fields\.(\w+)\}", link["url"]))
        for target in panel.targets:
            kept = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"]))))
            assert taken | columns <= kept
        assert not columns or panel.raw["type"] == "table"


@pytest.mark.npm
def test_the_grammar_of_grafanas_editor_takes_every_traceql_query(npm: Any, all_boards: Any) -> None:
    home = npm("@grafana/lezer-traceql@1.0.0", "@lezer/lr@1", "@lezer/common@1")
    texts = re.findall(r'"/explore\?[^"]+"', json.dumps(all_boards))
    queries = sorted({explored({"url": text.strip('"')})["queries"][0]["query"] for text in texts})
    wrong = '{ name = "mcp.resume" && }'
    script = """
        const { parser } = require("@grafana/lezer-traceql");
        for (const query of require("fs").readFileSync(0, "utf8").split("\\n")) {
          let wrong = false;
          parser.parse(query).iterate({ enter: (node) => { wrong ||= node.type.isError; } });
          if (wrong) console.log(query);
        }
    """
    assert len(queries) > 20
    assert home.node(script, "\n".join([*queries, wrong])).splitlines() == [wrong]

"""What every dashboard and every panel has: what Grafana's own linter asks for, and what a person needs at night."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import pytest

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
NAMES = {"mcp-resume-continuity", "mcp-resume-migration", "mcp-resume-server"}
VARIABLES = ["datasource", "traces", "job", "instance", "side", "generation"]


def test_there_are_three_by_the_names_that_the_alerts_link_to(all_boards: Any) -> None:
    assert set(all_boards) == NAMES
    assert all(board["uid"] == name for name, board in all_boards.items())


def test_it_is_the_classic_schema_and_not_to_be_edited(board: Any) -> None:
    assert board["schemaVersion"] == 42
    assert board["editable"] is False
    assert board["id"] is None
    assert board["title"].startswith("MCP resume / ")
    assert board["description"]


def test_the_variables_narrow_by_source_service_instance_side_and_generation(board: Any) -> None:
    variables = {each["name"]: each for each in board["templating"]["list"]}
    assert list(variables) == VARIABLES
    assert [variables[name]["type"] for name in VARIABLES] == [
        "datasource", "datasource", "query", "query", "custom", "custom",
    ]  # fmt: skip
    for name in VARIABLES[2:]:
        assert variables[name]["multi"] is True
        assert variables[name]["includeAll"] is True
        assert variables[name]["allValue"] == ".*"
    for name in ("job", "instance"):
        assert variables[name]["datasource"] == SOURCE
        assert variables[name]["refresh"] == 2  # whenever the time changes
        assert "mcp_resume_info" in variables[name]["query"]["query"]
    assert 'job=~"$job"' in variables["instance"]["query"]["query"]


def test_the_fixed_variables_offer_what_the_labels_can_be(board: Any) -> None:
    names = pytest.importorskip("otel_mcp_resume.report.names")
    variables = {each["name"]: each for each in board["templating"]["list"]}
    for name in ("side", "generation"):
        assert set(variables[name]["query"].split(",")) == names.LABEL_VALUES[name]
        assert [option["value"] for option in variables[name]["options"]][1:] == variables[name]["query"].split(",")


def test_the_other_dashboards_are_one_click_away(board: Any) -> None:
    (link,) = board["links"]
    assert (link["type"], link["tags"]) == ("dashboards", board["tags"])
    assert link["includeVars"] is True
    assert link["keepTime"] is True


def test_ids_and_titles_are_used_once(board: Any) -> None:
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    titles = Counter(panel["title"] for panel in board["panels"])
    assert titles.most_common(1)[0][1] == 1


def test_nothing_overlaps_and_all_is_on_the_grid(board: Any) -> None:
    places = [panel["gridPos"] for panel in board["panels"]]
    assert all(place["x"] >= 0 and place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]


def test_every_line_of_panels_is_filled(board: Any) -> None:
    """A hole is where a person looks for what is missing."""
    lines = Counter[int]()
    for panel in board["panels"]:
        lines[panel["gridPos"]["y"]] += panel["gridPos"]["w"]
    assert set(lines.values()) == {24}


def test_every_source_is_the_variable(panel: Any) -> None:
    assert panel.raw["datasource"] == SOURCE
    assert panel.targets
    assert all(target["datasource"] == SOURCE for target in panel.targets)


def test_it_says_what_it_shows_and_what_to_do(panel: Any) -> None:
    what, _, red = panel.raw["description"].partition("\n\n**When it is red:** ")
    assert panel.raw["title"]
    assert what.endswith(".")
    assert red.endswith(".")


def test_it_has_a_unit(panel: Any) -> None:
    assert panel.raw["fieldConfig"]["defaults"]["unit"]


def test_queries_are_told_apart(panel: Any) -> None:
    references = [target["refId"] for target in panel.targets]
    assert len(set(references)) == len(references)
    assert all(references)


def test_legends_can_be_seen(panel: Any) -> None:
    legend = panel.raw["options"].get("legend")
    if panel.raw["type"] in {"timeseries", "state-timeline"}:
        assert legend["showLegend"] is True
    if panel.raw["type"] == "heatmap":
        assert legend["show"] is True


def test_exemplars_are_on_where_attempts_and_durations_are_drawn(panel: Any) -> None:
    for target in panel.targets:
        drawn = target["range"] and panel.raw["type"] in {"timeseries", "heatmap"}
        has_exemplars = "rate(mcp_resume_attempts_total" in target["expr"] or "_seconds_bucket" in target["expr"]
        assert target["exemplar"] is (drawn and has_exemplars)

"""The builder's output as it is committed: complete, in a fixed order, and without what differs by accident."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["SCHEMA", "normalise", "text"]

SCHEMA = 42
"""The version of Grafana's classic dashboard schema."""

_BUILT_IN: dict[str, Any] = {
    "builtIn": 1,
    "datasource": {"type": "grafana", "uid": "-- Grafana --"},
    "enable": True,
    "hide": True,
    "iconColor": "rgba(0, 211, 255, 1)",
    "name": "Annotations & Alerts",
    "type": "dashboard",
}
"""Grafana adds it to a dashboard that has it not, which then looks changed."""


def normalise(board: dict[str, Any]) -> dict[str, Any]:
    """`board` with ids for all panels, reference ids for all queries, visible legends, and nothing superfluous."""
    board = {**board, "schemaVersion": SCHEMA, "id": None, "version": 1, "weekStart": ""}
    annotations = (board.get("annotations") or {}).get("list", [])
    board["annotations"] = {"list": [_BUILT_IN, *map(_without_placement, annotations)]}
    board["links"] = [_without_placement(link) for link in board["links"]]
    board["templating"] = {"list": [_variable(each) for each in board["templating"]["list"]]}
    board["panels"] = [_panel(panel, number) for number, panel in enumerate(board["panels"], start=1)]
    return board


def text(board: dict[str, Any]) -> str:
    """The bytes that are committed."""
    return json.dumps(normalise(board), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _variable(variable: dict[str, Any]) -> dict[str, Any]:
    """Without the keys of intervals, which the builder puts everywhere, and without one that no schema knows."""
    return {key: value for key, value in variable.items() if not key.startswith("auto") and key != "definition"}


def _panel(panel: dict[str, Any], number: int) -> dict[str, Any]:
    panel = {key: value for key, value in panel.items() if key != "repeatDirection"} | {"id": number}
    if panel["type"] == "row":
        return {**panel, "panels": []}
    panel["links"] = [_without_placement(link) for link in panel["links"]]
    defaults = panel["fieldConfig"]["defaults"]
    defaults["links"] = [_url(link) for link in defaults.get("links", [])]
    for change in (change for override in panel["fieldConfig"]["overrides"] for change in override["properties"]):
        if change["id"] == "links":
            change["value"] = [_url(link) for link in change["value"]]
    for place, target in enumerate(panel.get("targets", [])):
        target["refId"] = target.get("refId") or chr(ord("A") + place)
        target.setdefault("instant", False)
        target.setdefault("range", False)
    legend = panel.get("options", {}).get("legend")
    if legend is not None:
        legend["showLegend" if "showLegend" in legend or panel["type"] != "heatmap" else "show"] = True
    return panel


def _without_placement(link: dict[str, Any]) -> dict[str, Any]:
    """Where it has always been: beside the variables, and not in a menu."""
    return {key: value for key, value in link.items() if key != "placement"}


def _url(link: dict[str, Any]) -> dict[str, Any]:
    """Links of values have these three parts only; the rest belongs to links of dashboards and panels."""
    return {key: link[key] for key in ("title", "url", "targetBlank")}

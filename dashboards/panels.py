"""The kinds of panels that the dashboards are made of, each with what every panel must have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    timeseries,
)
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models.dashboard import (
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    MatcherConfig,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.links import runbook
from dashboards.looks import COLOURS, SHADES, About, Look, Query

__all__ = ["SOURCE", "amounts", "buckets", "lines", "listing", "number", "states"]

SOURCE = kinds.DataSourceRef(type_val="prometheus", uid="${datasource}")
P = TypeVar("P", bound=Any)


def number(about: About, expr: str, look: Look, width: int = 6, height: int = 4) -> stat.Panel:
    """One number, coloured by its thresholds if it has any: what is neither good nor bad has no colour."""
    panel = stat.Panel().with_target(_target(Query(expr), instant=True))
    panel = panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    judged = (look.red, look.amber, look.below) != (None, None, None)
    mode = kinds.BigValueColorMode.BACKGROUND if judged else kinds.BigValueColorMode.NONE
    panel = panel.graph_mode(kinds.BigValueGraphMode.NONE).color_mode(mode)
    return _finish(panel, about, look, width, height)


def lines(
    about: About,
    queries: Sequence[Query],
    look: Look,
    *,
    width: int = 12,
    height: int = 8,
    stacked: bool = False,
    table: bool = False,
) -> timeseries.Panel:
    """Lines over time. The legend leaves out what was 0 all the time, the graph does not.

    `table` puts the highest and the last value in the legend. It has room for a few lines only.
    """
    panel = timeseries.Panel().line_width(1).fill_opacity(15).show_points(kinds.VisibilityMode.NEVER)
    for query in queries:
        panel = panel.with_target(_target(query))
    legend = common.VizLegendOptions().show_legend(True).placement(kinds.LegendPlacement.BOTTOM)  # noqa: FBT003
    legend = legend.display_mode(kinds.LegendDisplayMode.TABLE if table else kinds.LegendDisplayMode.LIST)
    panel = panel.legend(legend.calcs(["max", "lastNotNull"] if table else []))
    panel = panel.tooltip(
        common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING)
    )
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(kinds.StackingMode.NORMAL).group("A")).fill_opacity(40)
    panel = panel.min(0).axis_soft_max(1).color_scheme(dashboard.FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC))
    legends = {query.legend for query in queries}
    fixed = COLOURS if "{{outcome}}" in legends else SHADES
    if legends & {"{{outcome}}", "{{side}} {{stream}}", "{{side}} {{generation}}"}:
        for name, colour in fixed.items():
            panel = panel.override_by_name(name, [_colour(colour)])
    panel = panel.with_override(
        MatcherConfig(id_val="byValue", options={"reducer": "allIsZero", "op": "gte", "value": 0}),
        [DynamicConfigValue(id_val="custom.hideFrom", value={"legend": True, "tooltip": True, "viz": False})],
    )
    return _finish(panel, about, look, width, height)


def amounts(about: About, query: Query, look: Look, width: int = 8, height: int = 8) -> bargauge.Panel:
    """A bar for each series, for the time that is shown."""
    panel = bargauge.Panel().with_target(_target(query, instant=True))
    panel = panel.orientation(kinds.VizOrientation.HORIZONTAL).display_mode(kinds.BarGaugeDisplayMode.BASIC)
    panel = panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"])).min(0)
    panel = panel.sizing(kinds.BarGaugeSizing.MANUAL).min_viz_height(16).max_viz_height(40)
    panel = panel.display_name(query.legend.replace("{{", "${__field.labels.").replace("}}", "}"))
    return _finish(panel, about, look, width, height)


def states(about: About, query: Query, look: Look, width: int = 24, height: int = 5) -> statetimeline.Panel:
    """What each thing was, and since when."""
    panel = statetimeline.Panel().with_target(_target(query)).merge_values(True).row_height(0.8)  # noqa: FBT003
    panel = panel.show_value(kinds.VisibilityMode.NEVER).fill_opacity(80).line_width(0)
    panel = panel.legend(
        common.VizLegendOptions()
        .show_legend(True)  # noqa: FBT003
        .display_mode(kinds.LegendDisplayMode.LIST)
        .placement(kinds.LegendPlacement.BOTTOM)
    )
    return _finish(panel, about, look, width, height)


def buckets(about: About, expr: str, look: Look, width: int = 12, height: int = 8) -> heatmap.Panel:
    """How often each duration came, over time."""
    panel = heatmap.Panel().with_target(_target(Query(expr, "{{le}}", exemplar=True), bucketed=True))
    panel = panel.calculate(False).show_legend()  # noqa: FBT003
    return _finish(panel, about, look, width, height)


def listing(
    about: About,
    queries: dict[str, str],
    order: Sequence[str],
    sort: str,
    look: Look,
    *,
    width: int,
    height: int = 8,
    heads: Mapping[str, str] = MappingProxyType({}),
) -> tables.Panel:
    """A table with a row for each combination of labels, and a column for each of `queries`, by its name.

    `heads` are shorter heads for labels: a table has to fit on half a screen.
    """
    panel = tables.Panel()
    names: dict[str, str] = {}
    for number_, (column, expr) in enumerate(queries.items()):
        letter = chr(ord("A") + number_)
        panel = panel.with_target(_target(Query(expr), instant=True, tabular=True).ref_id(letter))
        names["Value" if len(queries) == 1 else f"Value #{letter}"] = column
        panel = panel.override_by_name(
            column,
            [
                DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"}),
                DynamicConfigValue(id_val="links", value=[link.build() for link in about.links]),
                *([_colour(COLOURS[column])] if column in COLOURS and column != "gap" else []),
            ],
        )
    if len(queries) > 1:
        panel = panel.with_transformation(DataTransformerConfig(id_val="merge", options={}))
    for name, pixels in {"generation": 135, "previous_generation": 135, "stream": 100, "reason": 170}.items():
        if name in order:
            widths = [DynamicConfigValue(id_val="custom.width", value=pixels)]
            panel = panel.override_by_name(heads.get(name, name), widths)
    columns = {name: place for place, name in enumerate([*order, *names] if len(names) > 1 else [*names, *order])}
    panel = panel.with_transformation(
        DataTransformerConfig(
            id_val="organize",
            options={"excludeByName": {"Time": True}, "indexByName": columns, "renameByName": {**names, **heads}},
        )
    )
    panel = panel.sort_by([common.TableSortByFieldState().display_name(sort).desc(True)])  # noqa: FBT003
    panel = panel.min_width(64)
    return _finish(panel, replace(about, links=()), look, width, height)


def _target(
    query: Query, *, instant: bool = False, tabular: bool = False, bucketed: bool = False
) -> prometheus.Dataquery:
    target = prometheus.Dataquery().datasource(SOURCE).expr(query.expr).legend_format(query.legend or "__auto")
    target = target.exemplar(query.exemplar)
    if tabular or bucketed:
        target = target.format(PromQueryFormat.TABLE if tabular else PromQueryFormat.HEATMAP)
    return target.instant() if instant else target.range()


def _finish(panel: P, about: About, look: Look, width: int, height: int) -> P:
    panel = panel.title(about.title).description(f"{about.what}\n\n**When it is red:** {about.red}").datasource(SOURCE)
    panel = panel.unit(look.unit).thresholds(_thresholds(look)).links([runbook(name) for name in about.runbooks])
    if look.decimals is not None:
        panel = panel.decimals(look.decimals)
    if look.mappings:
        words = {
            value: ValueMappingResult(text=word, color=colour, index=place)
            for place, (value, (word, colour)) in enumerate(look.mappings.items())
        }
        panel = panel.mappings([ValueMap(options=words)])
    if about.links:
        panel = panel.data_links(list(about.links))
    sized: P = panel.span(width).height(height)
    return sized


def _thresholds(look: Look) -> dashboard.ThresholdsConfig:
    steps = [Threshold(value=None, color="red" if look.below is not None else "green")]
    if look.below is not None:
        steps.append(Threshold(value=look.below, color="green"))
    if look.amber is not None:
        steps.append(Threshold(value=look.amber, color="orange"))
    if look.red is not None:
        steps.append(Threshold(value=look.red, color="red"))
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def _colour(colour: str) -> DynamicConfigValue:
    return DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": colour})

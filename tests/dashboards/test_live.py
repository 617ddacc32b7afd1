"""Every query in a real Prometheus that scrapes real processes: finite numbers where something happens, 0 where not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from otel_mcp_resume.cli.demo import missing
from tests.dashboards.fleet import Prometheus, demo, idle_process, prometheus, wait_for

pytestmark = [
    pytest.mark.prom,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("fleet"),
    pytest.mark.skipif(bool(missing()), reason=f"the demo cannot be played here: {missing()}"),
]

SCRAPE = 1
"""Seconds."""
CONFIG = """
global: {{scrape_interval: {interval}s}}
scrape_configs:
  - job_name: busy
    static_configs: [{{targets: {busy}}}]
  - job_name: idle
    static_configs: [{{targets: [{idle}]}}]
"""
NEUTRAL = ("mcp_resume_info", "mcp_resume_hook_installed")
"""What is not 0 in a process in which nothing happens."""


@pytest.fixture(scope="module")
def metrics(tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """After each of the scenes has been played once more while it was scraped."""
    binary, home = tool("prometheus"), tmp_path_factory.mktemp("fleet")
    with demo("slow-store", "deploy", "migration", home=home) as busy, idle_process() as idle:
        config = CONFIG.format(interval=SCRAPE, busy=busy, idle=idle)
        with prometheus(binary, home, config) as server:

            def loses(expr: str) -> bool:
                return server.value(expr) > 0

            for outcome in ('reason="undelivered"', 'reason="session_changed"', 'previous_generation="sse"'):
                expr = f'sum by () (increase(mcp_resume_attempts_total{{job="busy", {outcome}}}[5m]))'
                wait_for(partial(loses, expr), 240, f"a loss with {outcome}")
            wait_for(lambda: server.value('mcp_resume_info{job="idle"}') == 1, 30, "the idle process")
            yield server


def asked(query: Any, job: str) -> str:
    """The expression as Grafana sends it when `job` is chosen and all else is left at All."""
    expr: str = query.expr.replace("$__rate_interval", f"{4 * SCRAPE + 1}s").replace("$__range", "5m")
    expr = expr.replace("$job", job)
    for name in ("instance", "side", "generation"):
        expr = expr.replace(f"${name}", ".*")
    assert "$" not in expr
    return expr


def answers(server: Prometheus, query: Any, job: str) -> list[float]:
    expr = asked(query, job)
    return server.instant(expr) if query.instant else server.over_time(expr, 60, SCRAPE)


def test_every_query_of_a_busy_fleet_has_finite_data(metrics: Prometheus, all_queries: Any) -> None:
    found = {str(query): answers(metrics, query, "busy") for query in all_queries if query.kind != "annotation"}
    assert [place for place, values in found.items() if not values] == []
    assert [place for place, values in found.items() if not all(map(math.isfinite, values))] == []


def test_what_the_scenes_lose_is_on_the_dashboards(metrics: Prometheus, all_queries: Any) -> None:
    found = {query.place: answers(metrics, query, "busy") for query in all_queries}
    for part in ("Silent gaps", "Losses by reason", "Verdicts", "Losing events", "Losses by service"):
        (values,) = [values for place, values in found.items() if f"-{part}-" in place]
        assert max(values) > 0, part
    for part in ("migration-5-Sessions lost-A", "migration-11-Crossings by verdict-A", "server-2-Skipped-A"):
        assert max(found[f"mcp-resume-{part}"]) > 0, part


def test_a_token_that_crosses_generations_fires_the_alert_of_the_migration(
    metrics: Prometheus, directory: Path
) -> None:
    groups = yaml.safe_load((directory.parent / "alerts" / "mcp-resume.alerts.yml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"] if rule.get("alert") == "McpResumeUnsafeMigration"]
    fires = {rule["labels"]["severity"]: metrics.instant(rule["expr"]) for rule in rules}
    assert fires["critical"]
    assert not fires["warning"]


def test_an_idle_fleet_is_all_zeros(metrics: Prometheus, all_queries: Any) -> None:
    for query in all_queries:
        if query.kind == "annotation" or (query.kind == "table" and not query.place.endswith("-A")):
            continue
        values = answers(metrics, query, "idle")
        assert values, query.place
        if not any(name in query.expr for name in NEUTRAL):
            assert set(values) == ({1.0} if "Continuity" in query.place else {0.0}), query.place


def test_where_nothing_reports_there_is_a_zero_and_no_hole(metrics: Prometheus, all_queries: Any) -> None:
    for query in all_queries:
        if query.kind == "annotation" or (query.kind == "table" and not query.place.endswith("-A")):
            continue
        assert answers(metrics, query, "nobody"), query.place


def test_marks_of_new_processes_are_there(metrics: Prometheus, all_queries: Any) -> None:
    (query,) = {asked(query, "busy") for query in all_queries if query.kind == "annotation"}
    assert max(metrics.over_time(query, 60, 1)) == 8


def test_the_variables_offer_the_services_and_their_instances(metrics: Prometheus) -> None:
    assert metrics.get("/api/v1/label/job/values", **{"match[]": "mcp_resume_info"}) == ["busy", "idle"]
    assert len(metrics.get("/api/v1/label/instance/values", **{"match[]": 'mcp_resume_info{job=~"busy"}'})) == 8


def test_every_process_was_scraped(metrics: Prometheus) -> None:
    health = {each["health"] for each in metrics.get("/api/v1/targets")["activeTargets"]}
    assert health == {"up"}


def test_the_dashboards_ask_for_every_metric(all_queries: Any, directory: Path) -> None:
    from otel_mcp_resume.report.names import METRICS

    text = "\n".join(query.expr for query in all_queries)
    assert [metric.name for metric in METRICS if metric.name not in text] == []

"""Paged for real: processes that lose events, a Prometheus that sees it, an Alertmanager that calls, and who is called.

Nothing is made up but time: every window and delay of the rules, and every interval of Alertmanager, is divided by
`FASTER`. Thresholds, labels, routes and inhibitions are those that users get.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest
import yaml

from otel_mcp_resume.cli.demo import missing
from tests.alerts.test_paging import webhooks
from tests.dashboards.fleet import Prometheus, demo, free_port, prometheus, wait_for

pytestmark = [
    pytest.mark.prom,
    pytest.mark.full,
    pytest.mark.timeout(420),
    pytest.mark.xdist_group("fleet"),
    pytest.mark.skipif(bool(missing()), reason=f"the demo cannot be played here: {missing()}"),
]

FASTER = 20
"""A window of ten minutes takes thirty seconds."""
FLEETS = (("deploy", "given-up"), ("slow-store", "shared-store"))
"""Two, so that a loss comes again before its alert has ended: whom an alert inhibits is not called in between."""
LIMIT = 240.0
"""Seconds until everything must have been paged. A hundred are enough where nothing else runs."""
AFTERWARDS = 600.0 / FASTER
"""Seconds that are listened on: as long as the longest window of what pages."""

PAGES = {
    ("pager", "McpResumeSilentGap", "client"),  # deploy
    ("pager", "McpResumeStreamGivenUp", ""),  # given-up
    ("pager", "McpResumeEventsUndelivered", ""),  # slow-store
    ("pager", "McpResumeCrossSessionDelivery", "server"),  # shared-store
    ("security", "McpResumeCrossSessionDelivery", "server"),
}
"""Who is called about what, as seen by which side. The server sees the gap of the slow store, too: it is inhibited."""

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
Call = tuple[str, dict[str, Any]]

CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
alerting: {{alertmanagers: [{{static_configs: [{{targets: [{manager}]}}]}}]}}
scrape_configs:
  - job_name: troubled
    static_configs: [{{targets: {troubled}}}]
  - job_name: healthy
    static_configs: [{{targets: {healthy}}}]
"""


def shorter(duration: str) -> str:
    """A duration of Prometheus or Alertmanager, divided by `FASTER`."""
    seconds = sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([smhd])", duration))
    assert seconds
    return f"{seconds * 1000 // FASTER}ms"


def faster_rules(text: str) -> str:
    """A file of rules with its windows and delays shortened, and nothing else."""
    groups = yaml.safe_load(text)
    for rule in (rule for group in groups["groups"] for rule in group["rules"]):
        rule["expr"] = re.sub(
            r"(\[|offset )(\d+[smhd])\b", lambda found: found[1] + shorter(found[2]), str(rule["expr"])
        )
        for key in ("for", "keep_firing_for"):
            if key in rule:
                rule[key] = shorter(rule[key])
    return str(yaml.safe_dump(groups, sort_keys=False))


@contextmanager
def alertmanager(binary: str, home: Path, text: str, hooks: int) -> Iterator[int]:
    """The example configuration in haste, with all receivers here. Its port."""
    text = text.replace("localhost:9095", f"127.0.0.1:{hooks}")
    text = re.sub(r"((?:group_wait|_interval): )(\w+)", lambda found: found[1] + shorter(found[2]), text)
    (home / "alertmanager.yml").write_text(text)
    port = free_port()
    command = [binary, f"--config.file={home}/alertmanager.yml", f"--storage.path={home}/alertmanager"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]
    with (home / "alertmanager.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_for(Prometheus(port).is_ready, 60, "an Alertmanager that is ready")  # it says so under the same path
        yield port
    finally:
        process.terminate()
        process.wait(timeout=30)


def installed(*names: str) -> str:
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.fail(f'{names[0]} is missing: apt-get install it, or leave these tests out with -m "not prom"')
    return path


def heard(calls: Queue[Call], seconds: float, enough: Callable[[list[Call]], bool]) -> list[Call]:
    """What receivers were told, until it is enough or the time is up."""
    found: list[Call] = []
    deadline = time.monotonic() + seconds
    while not enough(found) and (left := deadline - time.monotonic()) > 0:
        try:
            found.append(calls.get(timeout=left))
        except Empty:
            break
    return found


def firing(calls: list[Call]) -> list[tuple[str, dict[str, str]]]:
    return [(to, alert["labels"]) for to, body in calls for alert in body["alerts"] if alert["status"] == "firing"]


def pages(calls: list[Call]) -> set[tuple[str, str, str]]:
    """Calls that wake somebody."""
    told = firing(calls)
    return {(to, labels["alertname"], labels.get("side", "")) for to, labels in told if to in {"pager", "security"}}


def suppressed(port: int) -> set[tuple[str, str]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v2/alerts", timeout=10) as answer:
        alerts = json.load(answer)
    return {
        (alert["labels"]["alertname"], alert["labels"].get("reason", ""))
        for alert in alerts
        if alert["status"]["inhibitedBy"]
    }


def test_the_pages_of_the_scenes_arrive_and_a_healthy_fleet_gets_none(directory: Path, tmp_path: Path) -> None:
    binaries = installed("prometheus"), installed("prometheus-alertmanager", "alertmanager")
    rules = tmp_path / "rules"
    rules.mkdir()
    for source in directory.glob("mcp-resume.*.yml"):
        (rules / source.name).write_text(faster_rules(source.read_text()))
    homes = [tmp_path / name for name in ("one", "other", "healthy")]
    for home in homes:
        home.mkdir()
    example = (directory / "alertmanager.example.yml").read_text()
    with (
        webhooks() as (hooks, calls),
        alertmanager(binaries[1], tmp_path, example, hooks) as manager,
        demo(*FLEETS[0], home=homes[0]) as one,
        demo(*FLEETS[1], home=homes[1]) as other,
        demo("resume", home=homes[2]) as healthy,
        prometheus(
            binaries[0],
            tmp_path,
            CONFIG.format(
                rules=f"{rules}/*.yml", manager=f"127.0.0.1:{manager}", troubled=[*one, *other], healthy=healthy
            ),
        ) as server,
    ):
        found = heard(calls, LIMIT, lambda calls: pages(calls) >= PAGES)
        assert pages(found) >= PAGES, server.get("/api/v1/alerts")
        found += heard(calls, AFTERWARDS, lambda _: False)
        inhibited = suppressed(manager)
        resumed = server.value('sum by () (increase(mcp_resume_attempts_total{job="healthy", outcome="proven"}[5m]))')

    assert pages(found) == PAGES
    assert ("McpResumeSilentGap", "undelivered") in inhibited  # the same loss, which has paged already
    assert resumed > 0  # it was under way
    assert [labels for _, labels in firing(found) if labels.get("job") == "healthy"] == []
    assert {labels["job"] for _, labels in firing(found)} == {"troubled"}  # and no NoData, which has no job
    severities = {(labels["alertname"], labels["severity"]) for _, labels in firing(found)}
    assert not {name for name, severity in severities if severity == "warning" and (name, "critical") in severities}
    for to, body in found:  # grouped: a call is about one kind of trouble
        assert len({alert["labels"]["alertname"] for alert in body["alerts"]}) == 1, to

"""From a number to its trace: a real Prometheus keeps exemplars whose trace ids the OTLP receiver knows."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from otel_mcp_resume.cli.demo.ports import metrics_ports
from tests.traces.plays import playing, to
from tests.traces.receiver import LIMIT, receiver

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus; `tests/run` installs it as root"),
]


@contextmanager
def prometheus(home: Path, targets: list[int]) -> Iterator[str]:
    """Scrapes those ports every half a second, and keeps exemplars. Its address."""
    (port,) = metrics_ports(1, None)
    config = {
        "global": {"scrape_interval": "500ms", "scrape_timeout": "400ms"},
        "scrape_configs": [
            {"job_name": "demo", "static_configs": [{"targets": [f"127.0.0.1:{target}" for target in targets]}]}
        ],
    }
    (home / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    command = [
        "prometheus",
        "--enable-feature=exemplar-storage",
        f"--config.file={home / 'prometheus.yml'}",
        f"--storage.tsdb.path={home / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def exemplars(url: str, query: str) -> set[str]:
    """The trace ids of a series' exemplars, as soon as there are any."""
    now = time.time()
    asked = urllib.parse.urlencode({"query": query, "start": now - 300, "end": now + 300})
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/api/v1/query_exemplars?{asked}", timeout=2) as response:
                data: list[dict[str, Any]] = json.load(response)["data"]
        except OSError:
            data = []  # it is about to start
        if found := {each["labels"]["trace_id"] for series in data for each in series["exemplars"]}:
            return found
        time.sleep(0.2)
    raise AssertionError(f"no exemplar of {query}")


def test_prometheus_returns_trace_ids_that_the_receiver_knows(tmp_path: Path) -> None:
    with receiver() as received, playing("deploy", to(received.url)) as stage:
        with prometheus(tmp_path, [child.metrics_port for child in stage.children]) as url:
            stage.play()
            traces = {
                name: exemplars(url, name)
                for name in (
                    'mcp_resume_attempts_total{side="client",outcome="gap",reason="session_changed"}',
                    'mcp_resume_verdict_seconds_bucket{side="client"}',
                    'mcp_resume_downtime_seconds_bucket{side="client"}',
                )
            }
        gaps = received.until(lambda here: here.named("mcp.resume", mcp__resume__outcome="gap"))
    known = {span.trace_id for span in gaps}
    assert all(found <= known for found in traces.values()), (traces, known)

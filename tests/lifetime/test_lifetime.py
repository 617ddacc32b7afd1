"""What a process does with the plugin while it lives: it takes it away, it ends, it is scraped."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from otel_mcp_resume.plugin import Plugin, Providers
from otel_mcp_resume.rooms import ROOMS
from otel_mcp_resume.settings import Settings
from tests.lifetime.pair import pair
from tests.sdk.client_world import RESUMES, counts, faults
from tests.sdk.server_side import quiet

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not RESUMES, reason="before 1.23 the SDK re-opens no stream of a request"),
    pytest.mark.filterwarnings("ignore:.* is deprecated as of 2026-07-28"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # older mcp leaves streams unclosed
]
ROOT = Path(__file__).parents[2]
PROMPT = 20.0
"""Seconds within which a process has ended: a proof timeout or a stream would keep it for longer."""
SESSIONS, CALLS = 4, 5


def child(*arguments: str) -> subprocess.CompletedProcess[str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    command = [sys.executable, "-m", *arguments]
    environ = {**ours, "OTEL_EXPORTER_PROMETHEUS_PORT": "0"}
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=90)


def test_uninstrument_in_the_middle_of_a_call_restores_everything_and_changes_nothing() -> None:
    run = child("tests.lifetime.leaving")
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("how", ["thread", "exit", "left"])
def test_the_interpreter_ends_with_open_streams_as_it_would_without_us(how: str) -> None:
    run = child("tests.lifetime.ending", how, "plugin")
    assert (run.returncode, run.stderr) == (3, "")
    assert time.time() - float(run.stdout) < PROMPT


@pytest.fixture
def plugin() -> Iterator[Plugin]:
    kit = Plugin(Settings(prometheus_port=0), Providers())
    for room in ROOMS:
        import_module(room.module)
        kit.open(room)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with quiet():
            yield kit
    finally:
        sys.setswitchinterval(interval)
        kit.close()


class Scraper(threading.Thread):
    """Scrapes as often as it can, and watches that no counter ever goes back."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.over = threading.Event()
        self.problems: list[str] = []
        self.scrapes = 0

    def run(self) -> None:
        before: dict[str, float] = {}
        try:
            while not self.over.is_set():
                now = self.scraped()
                self.problems += [f"{key} fell" for key, value in before.items() if now.get(key, -1.0) < value]
                before, self.scrapes = now, self.scrapes + 1
        except Exception as error:  # noqa: BLE001 - whatever a scraper would see
            self.problems.append(repr(error))

    def scraped(self) -> dict[str, float]:
        with urllib.request.urlopen(self.url, timeout=30) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
        samples = [sample for family in families if family.type == "counter" for sample in family.samples]
        return {f"{s.name} {sorted(s.labels.items())}": s.value for s in samples if s.name.startswith("mcp_resume")}


async def traffic() -> None:
    """Some sessions at the same time, and in each some calls that are cut and resumed."""

    async def session() -> None:
        async with pair() as both:
            for number in range(CALLS):
                assert (await both.call(f"c{number}"))[-1] == "played"

    await asyncio.gather(*(session() for _ in range(SESSIONS)))


def test_scrapes_while_streams_run_see_no_error_and_miss_nothing(plugin: Plugin) -> None:
    assert plugin.exporter.url
    scraper = Scraper(plugin.exporter.url)
    scraper.start()
    try:
        asyncio.run(traffic())
    finally:
        scraper.over.set()
        scraper.join(60)
    assert scraper.problems == []
    assert scraper.scrapes > 1
    assert faults(plugin) == {}
    resumed = float(SESSIONS * CALLS)
    assert counts(plugin, "mcp_resume_attempts_total", "side", "stream", "outcome") == {
        "client request proven": resumed,
        "server request proven": resumed,
    }
    events = counts(plugin, "mcp_resume_events_total", "side", "stream")
    assert events["client request"] == events["server request"] >= 4 * resumed
    assert counts(plugin, "mcp_resume_open_streams", "side") == {}
    assert counts(plugin, "mcp_resume_open_sessions", "side") == {}

"""Several worker processes, as a server with more than one has them, and prometheus_client's multi-process mode."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.name != "posix", reason="prometheus_client's multi-process mode is POSIX only")

PATIENCE = 30.0

WORKER = """
import os, sys, time
from prometheus_client import values
if "WORKER_NUMBER" in os.environ:
    values.ValueClass = values.MultiProcessValue(lambda: os.environ["WORKER_NUMBER"])
from prometheus_client import REGISTRY, CollectorRegistry, Counter, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from otel_mcp_resume.exporter import Exporter
from otel_mcp_resume.report.metrics import Metrics
from otel_mcp_resume.report.workers import Workers
from otel_mcp_resume.rules.terms import *
from otel_mcp_resume.settings import Settings
from otel_mcp_resume.watch.facts import *

Workers.__init__.__kwdefaults__ = None
Workers.__init__.__defaults__ = (0.05,)
application = Counter("application_calls", "The application's own.")
metrics = Metrics()
metrics.begin(Side.SERVER)
metrics.info("1.0", "2.3.0")
metrics.hook_installed("server.x", True)
exporter = Exporter(metrics, Settings(prometheus_port=0, prometheus_host="127.0.0.1"))
HTTP, STANDALONE = Generation.STREAMABLE_HTTP, Stream.STANDALONE
count = metrics.event_counter(Side.SERVER, HTTP, STANDALONE)

def aggregate():
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return generate_latest(registry).decode()

for line in sys.stdin:
    print(repr(eval(line)), flush=True)
"""


class Worker:
    """A process that evaluates one expression a line, and answers with its `repr`."""

    def __init__(self, directory: Path, **environ: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            env={**os.environ, **environ, "PROMETHEUS_MULTIPROC_DIR": str(directory)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, expression: str) -> object:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the worker died of {expression}"
        try:
            return ast.literal_eval(answer)
        except (SyntaxError, ValueError):
            return answer

    def url(self) -> str:
        """Where it serves, once it does."""
        return str(wait_for(lambda: self("exporter.url")))

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def wait_for(condition: Callable[[], object]) -> object:
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def scrape(url: str) -> dict[str, float]:
    with urlopen(url, timeout=PATIENCE) as response:
        return read(response.read().decode())


def read(text: str) -> dict[str, float]:
    """Every sample, by name and label values; each may come once."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = f"{sample.name}{{{','.join(value for _, value in sorted(sample.labels.items()))}}}"
            assert key not in found, f"{key} comes twice"
            found[key] = sample.value
    return found


EVENTS = "mcp_resume_events_total{streamable_http,server,standalone}"
SESSIONS = "mcp_resume_open_sessions{streamable_http,server}"
PENDING = "mcp_resume_pending_requests{streamable_http}"
OLDEST = "mcp_resume_oldest_pending_request_seconds{streamable_http}"
INFO = "mcp_resume_info{2.3.0,1.0}"
HOOK = "mcp_resume_hook_installed{server.x}"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    with ExitStack() as workers:

        def worker(**environ: str) -> Worker:
            started = Worker(tmp_path, **environ)
            workers.callback(started.kill)
            return started

        yield worker


def test_one_endpoint_shows_all_workers_and_moves_on_when_its_worker_dies(start: Callable[..., Worker]) -> None:
    first, second = start(), start()
    first("exporter.start()")
    url = first.url()
    second("exporter.start()")
    for worker, times in ((first, 2), (second, 3)):
        for _ in range(times):
            worker("count()")
        worker("metrics.record(SessionOpened(Side.SERVER, HTTP))")
        worker("metrics.record(PendingRequests(HTTP, 2))")
        worker("metrics.record(StreamReopened(Side.SERVER, HTTP, STANDALONE, 1.0))")
        worker("application.inc()")
    first("metrics.watch_oldest_pending(lambda: {HTTP: 40.0})")
    second("metrics.watch_oldest_pending(lambda: {HTTP: 30.0})")
    wait_for(lambda: scrape(url)[OLDEST] == 40)
    samples = scrape(url)
    assert second("exporter.url") is None
    assert (samples[EVENTS], samples[SESSIONS], samples[PENDING]) == (5, 2, 4)
    assert (samples[INFO], samples[HOOK]) == (1, 1)
    assert samples["mcp_resume_downtime_seconds_count{streamable_http,server,standalone}"] == 2
    assert all(name.startswith("mcp_resume_") for name in samples)
    assert not any(name.endswith("_created") for name in samples)

    first.kill()
    samples = scrape(second.url())
    assert (samples[EVENTS], samples[SESSIONS], samples[PENDING]) == (5, 1, 2)
    assert (samples[INFO], samples[HOOK]) == (1, 1)
    wait_for(lambda: scrape(second.url())[OLDEST] == 30)

    second("metrics.hook_installed('server.x', False)")
    assert scrape(second.url())[HOOK] == 0
    assert scrape(second.url())["mcp_resume_internal_errors_total{exporter}"] == 0


def test_the_applications_own_endpoint_shows_ours_once(start: Callable[..., Worker]) -> None:
    worker, other = start(), start()
    for each in (worker, other):
        each("exporter.start()")
        each("count()")
        each("application.inc()")
    samples = read(str(worker("aggregate()")))
    assert samples[EVENTS] == 2
    assert samples["application_calls_total{}"] == 2
    assert samples.keys() >= scrape(worker.url()).keys()


def test_a_default_registry_that_reads_the_files_shows_ours_once(start: Callable[..., Worker]) -> None:
    worker = start()
    worker("exporter.start()")
    worker("count()")
    alone = read(str(worker("generate_latest(REGISTRY).decode()")))
    assert alone[EVENTS] == 1
    worker("REGISTRY.unregister(application)")  # otherwise prometheus_client itself refuses what comes next
    worker("MultiProcessCollector(REGISTRY)")
    samples = read(str(worker("generate_latest(REGISTRY).decode()")))
    assert samples[EVENTS] == 1
    worker("exporter.stop()")
    assert read(str(worker("generate_latest(REGISTRY).decode()")))[EVENTS] == 1


def test_the_number_of_a_dead_process_may_come_again(start: Callable[..., Worker]) -> None:
    for _ in range(2):  # uWSGI names files by the number of the worker, so its successor finds them
        worker = start(WORKER_NUMBER="7")
        worker("metrics.record(SessionOpened(Side.SERVER, HTTP))")
        worker("count()")
        worker.kill()
    successor = start(WORKER_NUMBER="7")
    successor("exporter.start()")
    samples = scrape(successor.url())
    assert (samples[EVENTS], samples[SESSIONS]) == (2, 0)


def test_instrumenting_again_goes_on_counting(start: Callable[..., Worker]) -> None:
    worker = start()
    worker("count()")
    worker("globals().update(metrics=Metrics())")
    worker("metrics.begin(Side.SERVER)")
    worker("metrics.event_counter(Side.SERVER, HTTP, STANDALONE)()")
    worker("count()")
    assert read(str(worker("aggregate()")))[EVENTS] == 3


CHILD = """
def run(counts):
    child = os.fork()
    if child:
        return child
    metrics.after_fork()
    exporter.after_fork()
    if counts:
        metrics.record(SessionOpened(Side.SERVER, HTTP))
        metrics.event_counter(Side.SERVER, HTTP, STANDALONE)()
        count()
    open(os.environ["PROMETHEUS_MULTIPROC_DIR"] + "/ready", "w").close()
    time.sleep(60)
    os._exit(0)
"""


@pytest.mark.parametrize("counts", [True, False])
def test_a_forked_worker_counts_for_itself_and_is_no_heir_of_the_lock(
    start: Callable[..., Worker], tmp_path: Path, counts: bool
) -> None:
    parent = start()
    parent("exporter.start()")
    parent("metrics.record(SessionOpened(Side.SERVER, HTTP))")
    parent("count()")
    url = parent.url()
    parent(f"exec({CHILD!r}, globals())")
    pid = parent(f"run({counts})")
    try:
        wait_for((tmp_path / "ready").exists)
        samples = scrape(url)
        assert (samples[EVENTS], samples[SESSIONS]) == ((3, 2) if counts else (1, 1))
        parent("exporter.stop()")
        if not counts:  # a child with facts would be an heir of its own right
            third = start()
            third("exporter.start()")
            assert third.url()
    finally:
        parent(f"os.kill({pid}, 9)")
        parent(f"os.waitpid({pid}, 0)")

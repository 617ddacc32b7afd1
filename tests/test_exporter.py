from __future__ import annotations

import logging
import re
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from otel_mcp_resume.exporter import Exporter
from otel_mcp_resume.report.metrics import Metrics
from otel_mcp_resume.report.names import METRICS
from otel_mcp_resume.rules.terms import Generation, Outcome, Reason, Side, Stream
from otel_mcp_resume.settings import Settings
from otel_mcp_resume.watch.facts import AttemptSettled, SessionOpened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OPENED = SessionOpened(Side.SERVER, Generation.SSE)
Make = "Callable[..., Exporter]"


@pytest.fixture
def metrics() -> Metrics:
    made = Metrics()
    made.begin(Side.CLIENT)
    made.begin(Side.SERVER)
    made.info("1.0", "2.3.0")
    made.hook_installed("client.send", installed=True)
    return made


@pytest.fixture
def make(metrics: Metrics) -> Iterator[Callable[..., Exporter]]:
    made: list[Exporter] = []

    def exporter(**settings: object) -> Exporter:
        made.append(Exporter(metrics, Settings(**{"prometheus_port": 0, **settings})))  # type: ignore[arg-type]
        return made[-1]

    yield exporter
    for one in made:
        one.stop()


def scrape(url: str | None, accept: str = "text/plain") -> str:
    assert url is not None
    with urlopen(Request(url, headers={"Accept": accept}), timeout=10) as response:
        body: bytes = response.read()
    return body.decode()


def value(text: str, name: str, **labels: str) -> float:
    [found] = [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return found


def test_it_serves_every_metric_and_what_is_recorded_later(make: Callable[..., Exporter], metrics: Metrics) -> None:
    exporter = make()
    exporter.start()
    names = set(re.findall(r"^# TYPE (\S+)", scrape(exporter.url), re.MULTILINE))
    assert names == {name.name for name in METRICS}
    metrics.record(OPENED)
    assert value(scrape(exporter.url), "mcp_resume_open_sessions", side="server", generation="sse") == 1


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool comes with Debian's package prometheus")
def test_promtool_finds_nothing_to_say(make: Callable[..., Exporter], metrics: Metrics) -> None:
    exporter = make()
    exporter.start()
    metrics.record(
        AttemptSettled(
            Side.CLIENT,
            Generation.STREAMABLE_HTTP,
            Generation.SSE,
            Stream.STANDALONE,
            Outcome.GAP,
            Reason.SESSION_CHANGED,
            0.5,
        )
    )
    check = subprocess.run(
        ["promtool", "check", "metrics"],
        input=scrape(exporter.url),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (check.returncode, check.stdout, check.stderr) == (0, "", "")


def test_openmetrics_is_negotiated_and_valid(make: Callable[..., Exporter]) -> None:
    exporter = make()
    exporter.start()
    text = scrape(exporter.url, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert text.endswith("# EOF\n")
    parse: Any = parse_openmetrics  # it has no annotations
    families = {family.name: family.type for family in parse(text)}
    assert families == {name.name.removesuffix("_total"): name.kind for name in METRICS}
    assert "_created" not in text


def test_some_metrics_can_be_asked_for_by_name(make: Callable[..., Exporter]) -> None:
    exporter = make()
    exporter.start()
    text = scrape(f"{exporter.url}?name[]=mcp_resume_info")
    assert re.findall(r"^# TYPE (\S+)", text, re.MULTILINE) == ["mcp_resume_info"]


def test_a_taken_port_moves_on_with_a_warning_that_names_it(
    make: Callable[..., Exporter], caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        exporter = make(prometheus_port=taken)
        exporter.start()
        assert exporter.url is not None
        served = int(exporter.url.rsplit(":", 1)[1].split("/")[0])
        assert taken < served <= taken + 16
        assert scrape(exporter.url)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.name == "otel_mcp_resume.plugin"
    assert record.getMessage() == f"otel-mcp-resume: port {taken} is taken, /metrics is at {exporter.url}"


def test_a_client_and_a_server_on_one_host_share_the_default_port_range(make: Callable[..., Exporter]) -> None:
    first, second = make(), make()
    first.start()
    assert first.url is not None
    second._settings = Settings(prometheus_port=int(first.url.split(":")[2].split("/")[0]))
    second.start()
    assert second.url not in (None, first.url)
    assert scrape(first.url)
    assert scrape(second.url)


def test_when_all_ports_are_taken_none_is_served(
    make: Callable[..., Exporter], caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as others:
        while True:  # 17 ports in a row
            held = others.enter_context(socket.socket())
            held.bind(("127.0.0.1", 0))
            first = held.getsockname()[1]
            if first + 16 > 65535:
                continue
            for port in range(first + 1, first + 17):
                held = others.enter_context(socket.socket())
                with suppress(OSError):  # taken by somebody else serves as well
                    held.bind(("127.0.0.1", port))
            break
        for taken in range(first, first + 17):
            with socket.socket() as probe, pytest.raises(OSError, match="in use"):
                probe.bind(("127.0.0.1", taken))
        exporter = make(prometheus_port=first, prometheus_host="127.0.0.1")
        exporter.start()
    assert exporter.url is None
    assert f"ports {first} to {first + 16} of 127.0.0.1 are all taken" in caplog.text


def test_port_0_picks_one_and_says_which(make: Callable[..., Exporter], caplog: pytest.LogCaptureFixture) -> None:
    exporter = make()
    exporter.start()
    assert exporter.url is not None
    assert exporter.url in caplog.text


def test_port_none_serves_nothing_but_the_default_registry(
    make: Callable[..., Exporter], caplog: pytest.LogCaptureFixture
) -> None:
    exporter = make(prometheus_port=None)
    exporter.start()
    assert exporter.url is None
    assert caplog.records == []
    assert "mcp_resume_info{" in generate_latest(REGISTRY).decode()


def test_metrics_none_shows_nothing_anywhere(make: Callable[..., Exporter]) -> None:
    exporter = make(metrics=frozenset())
    exporter.start()
    assert exporter.url is None
    assert "mcp_resume" not in generate_latest(REGISTRY).decode()


@pytest.mark.parametrize("host", ["does-not-exist.invalid", "192.0.2.1"])
def test_a_host_that_cannot_be_bound_is_a_warning(
    make: Callable[..., Exporter], host: str, caplog: pytest.LogCaptureFixture
) -> None:
    exporter = make(prometheus_host=host)
    exporter.start()
    assert exporter.url is None
    assert f"no /metrics: {host}:0 cannot be bound" in caplog.text


def test_the_default_registry_shows_each_sample_once_and_is_left_clean(
    make: Callable[..., Exporter], metrics: Metrics
) -> None:
    before = generate_latest(REGISTRY).decode()
    assert "mcp_resume" not in before
    exporter = make()
    exporter.start()
    exporter.start()
    metrics.record(OPENED)
    text = generate_latest(REGISTRY).decode()
    ours = [line for line in text.splitlines() if line.startswith("mcp_resume")]
    assert len({line.split(" ")[0] for line in ours}) == len(ours)
    assert ours == [line for line in scrape(exporter.url).splitlines() if line.startswith("mcp_resume")]
    assert list(REGISTRY.restricted_registry(["mcp_resume_info"]).collect())
    exporter.stop()
    exporter.stop()
    assert "mcp_resume" not in generate_latest(REGISTRY).decode()


def test_a_name_that_the_application_has_claimed_costs_only_the_default_registry(
    metrics: Metrics, make: Callable[..., Exporter], caplog: pytest.LogCaptureFixture
) -> None:
    squatter = Exporter(metrics, Settings(prometheus_port=None))
    squatter.start()
    try:
        exporter = make()
        exporter.start()
        assert scrape(exporter.url)
        assert "default registry lacks our metrics" in caplog.text
        exporter.stop()
        assert "mcp_resume_info{" in generate_latest(REGISTRY).decode()
    finally:
        squatter.stop()


def test_a_scrape_that_fails_is_a_500_here_and_nothing_in_the_default_registry(
    make: Callable[..., Exporter],
    metrics: Metrics,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    exporter = make()
    exporter.start()
    with monkeypatch.context() as patch:
        patch.setattr(metrics, "collect", lambda: 1 / 0)
        with pytest.raises(OSError, match="500"):
            scrape(exporter.url)
        assert "python_info" in generate_latest(REGISTRY).decode()
    assert value(scrape(exporter.url), "mcp_resume_internal_errors_total", hook="exporter") == 2
    assert capfd.readouterr().err == ""
    assert sum("failed in exporter" in record.getMessage() for record in caplog.records) == 1


def test_an_age_that_cannot_be_had_costs_no_other_number(make: Callable[..., Exporter], metrics: Metrics) -> None:
    exporter = make()
    exporter.start()
    ages: dict[Generation, dict[Generation, float]] = {}
    metrics.watch_oldest_pending(lambda: ages[Generation.SSE])
    text = scrape(exporter.url)
    assert value(text, "mcp_resume_info") == 1
    assert value(text, "mcp_resume_internal_errors_total", hook="report.metrics") == 1


def test_stopping_frees_the_port_and_starting_again_takes_it(make: Callable[..., Exporter]) -> None:
    exporter = make()
    exporter.start()
    url = exporter.url
    exporter.stop()
    assert exporter.url is None
    with pytest.raises(OSError, match="refused"):
        scrape(url)
    exporter.start()
    assert scrape(exporter.url)


FORKING = """
import os, sys
from urllib.request import urlopen
from prometheus_client import REGISTRY, generate_latest
from otel_mcp_resume.exporter import Exporter
from otel_mcp_resume.report.metrics import Metrics
from otel_mcp_resume.rules.terms import Generation, Side
from otel_mcp_resume.settings import Settings
from otel_mcp_resume.watch.facts import SessionOpened

opened = SessionOpened(Side.SERVER, Generation.SSE)
metrics = Metrics()
metrics.begin(Side.SERVER)
metrics.record(opened)
metrics.record(opened)
exporter = Exporter(metrics, Settings(prometheus_port=0))
exporter.start()
url = exporter.url

def sessions(text):
    [line] = [l for l in text.decode().splitlines() if l.startswith('mcp_resume_open_sessions{generation="sse"')]
    return float(line.split()[1])

def of(url):
    return sessions(urlopen(url, timeout=10).read())

child = os.fork()
if not child:
    try:
        metrics.after_fork()
        exporter.after_fork()
        assert exporter.url is None
        assert sessions(generate_latest(REGISTRY)) == 0
        metrics.record(opened)
        assert exporter.url not in (None, url), exporter.url
        assert of(exporter.url) == 1
        assert of(url) == 2
        assert sessions(generate_latest(REGISTRY)) == 1
        exporter.stop()
        os._exit(0)
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert of(url) == 2
ready, say_ready = os.pipe()
done, say_done = os.pipe()
child = os.fork()
if not child:
    metrics.after_fork()
    exporter.after_fork()
    os.close(say_done)
    os.write(say_ready, b"x")
    os.read(done, 1)  # lives on, without a fact, as long as the parent
    os._exit(0)
os.read(ready, 1)
exporter.stop()
again = Exporter(metrics, Settings(prometheus_port=int(url.split(":")[2].split("/")[0])))
again.start()
assert again.url == url, "the child holds the port"
os.close(say_done)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("fine")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")
def test_a_forked_child_serves_its_own_numbers_once_it_has_any() -> None:
    run = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stdout) == (0, "fine\n"), run.stderr

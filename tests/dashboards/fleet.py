"""A real Prometheus that scrapes a real fleet: scenes of the demo, and a process in which nothing happens."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Prometheus", "demo", "free_port", "idle_process", "prometheus", "wait_for"]

DEMO = """
import signal, sys
from otel_mcp_resume.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts in the background
sys.exit(main(["demo", *sys.argv[1:]]))
"""
IDLE = """
import sys, mcp, mcp.client.streamable_http, mcp.server.streamable_http
print("ready", flush=True)
sys.stdin.read()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """What the condition returns as soon as that is something."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.2)
    return found


@contextmanager
def demo(*scenes: str, home: Path) -> Iterator[list[str]]:
    """`demo --serve`. What to scrape, as the demo says it."""
    chosen = [word for scene in scenes for word in ("--scene", scene)]
    log = home / "demo.log"
    with log.open("w") as out:
        process = subprocess.Popen([sys.executable, "-u", "-c", DEMO, "--serve", *chosen], stdout=out, stderr=out)

    def targets() -> list[str]:
        assert process.poll() is None, log.read_text()
        found = re.search(r"targets: \[([^\]]+)\]", log.read_text())
        return re.findall(r'"([^"]+)"', found[1]) if found else []

    try:
        yield wait_for(targets, 90, "a demo that serves")
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def idle_process() -> Iterator[str]:
    """A process with the plugin that neither calls nor serves. What to scrape."""
    port = free_port()
    environ = {**os.environ, "OTEL_MCP_RESUME": "1", "OTEL_EXPORTER_PROMETHEUS_PORT": str(port)}
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", IDLE], env=environ, stdin=pipe, stdout=pipe, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield f"127.0.0.1:{port}"
    finally:
        process.stdin.close()
        process.wait(timeout=30)
        process.stdout.close()


class Prometheus:
    """Asked as Grafana asks it."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def get(self, path: str, **parameters: Any) -> Any:
        data = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}{path}?{data}", timeout=20) as answer:
            return json.load(answer)["data"]

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=1) as answer:
                return int(answer.status) == 200
        except OSError:
            return False

    def value(self, expr: str) -> float:
        """The one value of an expression, 0 if it has none."""
        result = self.get("/api/v1/query", query=expr)["result"]
        return float(result[0]["value"][1]) if result else 0.0

    def instant(self, expr: str) -> list[float]:
        """All values now."""
        return [float(each["value"][1]) for each in self.get("/api/v1/query", query=expr)["result"]]

    def over_time(self, expr: str, seconds: float, step: int) -> list[float]:
        """All values of all series within the last `seconds`."""
        now = time.time()
        found = self.get("/api/v1/query_range", query=expr, start=now - seconds, end=now, step=step)["result"]
        return [float(value) for each in found for _, value in each["values"]]


@contextmanager
def prometheus(binary: str, home: Path, config: str) -> Iterator[Prometheus]:
    """One with that configuration, and with exemplars."""
    (home / "prometheus.yml").write_text(config)
    port = free_port()
    command = [binary, f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/data"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--enable-feature=exemplar-storage", "--log.level=warn"]
    with (home / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    server = Prometheus(port)

    def ready() -> bool:
        assert process.poll() is None, (home / "prometheus.log").read_text()
        return server.is_ready()

    try:
        wait_for(ready, 60, "a Prometheus that is ready")
        yield server
    finally:
        process.terminate()
        process.wait(timeout=30)

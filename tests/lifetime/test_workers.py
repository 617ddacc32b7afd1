"""gunicorn with two worker processes that share metric files: workers die and are replaced, and the numbers add up."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.peers.balancer import free_port
from tests.sdk.client_world import RESUMES
from tests.sdk.server_side import PROTOCOL

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(sys.platform == "win32", reason="gunicorn forks"),
    pytest.mark.skipif(find_spec("gunicorn") is None, reason="gunicorn is in the dependency group `test`"),
    pytest.mark.skipif(not RESUMES, reason="before 1.23 no stream of a request can be closed to be resumed"),
]
Message = dict[str, Any]
ROOT = Path(__file__).parents[2]
PATIENCE = 30.0
"""Seconds for anything."""
PROMPT = 20.0
"""Seconds within which gunicorn has ended: less than the time after which it kills workers that do not."""


def until(condition: Callable[[], bool], what: Callable[[], object] = str) -> None:
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit, what()
        time.sleep(0.05)


class Fleet:
    """gunicorn, as its clients and its scraper see it."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, metrics: int, log: Path) -> None:
        self.process = process
        self.port = port
        self._metrics = metrics
        self._log = log
        self.calls = 0
        self.heard = 0
        """SSE messages that clients have received."""

    def has_started(self, workers: int) -> None:
        """Waits until so many have, in all."""
        until(lambda: self.log.count("Application startup complete") >= workers, lambda: self.log)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def scraped(self) -> dict[str, float]:
        """Sums of what is told of servers; nothing while nobody serves."""
        try:
            with urllib.request.urlopen(f"http://localhost:{self._metrics}/metrics", timeout=10) as answer:
                text = answer.read().decode()
        except OSError:
            return {}
        sums: dict[str, float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.labels.get("side", "server") == "server":
                    name = " ".join(filter(None, (sample.name, sample.labels.get("outcome"))))
                    sums[name] = sums.get(name, 0) + sample.value
        return sums

    def tells(self, **numbers: float) -> None:
        """Waits until the endpoint says so, and holds it to having had no fault."""
        wanted = {f"mcp_resume_{name}": value for name, value in numbers.items()} | {
            "mcp_resume_internal_errors_total": 0.0,
            "mcp_resume_events_total": self.heard,
        }

        def told() -> dict[str, float | None]:
            sums = self.scraped()
            return {name: sums.get(name) for name in wanted}

        until(lambda: told() == wanted, lambda: f"{told()}, not {wanted}\n{self.log}")


class Session:
    """One session on one connection that is kept alive: whatever it sends goes to the same worker."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._connection = HTTPConnection("127.0.0.1", fleet.port, timeout=PATIENCE)
        self._stream: HTTPResponse | None = None
        self._headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        info = {"clientInfo": {"name": "test", "version": "0"}, "capabilities": {}, "protocolVersion": PROTOCOL}
        answer = self._post({"id": 0, "method": "initialize", "params": info})
        self._headers |= {"Mcp-Session-Id": answer.headers["Mcp-Session-Id"], "Mcp-Protocol-Version": PROTOCOL}
        list(self._read(answer))
        list(self._read(self._post({"method": "notifications/initialized"})))
        self.pid = int(_text(self._play(3, cut=False)[-1][1]))

    def resume(self) -> None:
        """A call that is cut and resumed, by the same worker. What it is resumed on is open from now on, and idle."""
        before = self._play(2, cut=True)
        self._stream = self._get(before[-1][0])
        after = next((message for _, message in self._read(self._stream) if "result" in message), {})
        assert int(_text(after)) == self.pid

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._connection.close()

    def _play(self, count: int, *, cut: bool) -> list[tuple[str, Message]]:
        arguments = {"count": count, "cut": cut}
        self._fleet.calls += 1  # an id of its own among all sessions: the application looks for it
        answer = self._post(
            {"id": self._fleet.calls, "method": "tools/call", "params": {"name": "play", "arguments": arguments}}
        )
        return list(self._read(answer))

    def _post(self, message: Message) -> HTTPResponse:
        self._connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), self._headers)
        return self._connection.getresponse()

    def _get(self, token: str) -> HTTPResponse:
        self._connection.request("GET", "/mcp", headers=self._headers | {"Last-Event-ID": token})
        return self._connection.getresponse()

    def _read(self, answer: HTTPResponse) -> Iterator[tuple[str, Message]]:
        """Messages with their ids, as they come."""
        assert answer.status in (200, 202), (answer.status, answer.read())
        token = ""
        for line in answer:
            field, _, value = line.decode().strip().partition(": ")
            if field == "id":
                token = value
            elif field == "data":
                self._fleet.heard += bool(value)
                yield token, json.loads(value or "{}")
        answer.read()  # lets the connection go on


def _text(message: Message) -> str:
    return str(message["result"]["content"][0]["text"])


@contextlib.contextmanager
def serving(home: Path, *options: str) -> Iterator[Fleet]:
    """gunicorn with the plugin switched on from outside, on a socket that is ours."""
    shared = home / "metrics"
    shared.mkdir()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PROMETHEUS_"))}
    metrics = free_port()
    environ = {
        "OTEL_MCP_RESUME": "1",
        "OTEL_EXPORTER_PROMETHEUS_PORT": str(metrics),
        "PROMETHEUS_MULTIPROC_DIR": str(shared),
    }
    command = [sys.executable, "-m", "gunicorn", "tests.lifetime.worker_app:app", "--workers", "2", *options]
    with socket.create_server(("127.0.0.1", 0)) as listener, (home / "log").open("wb") as log:
        bound = listener.fileno()
        process = subprocess.Popen(
            [*command, "--bind", f"fd://{bound}", "--no-control-socket"],
            cwd=ROOT,
            env=clean | environ,
            stdout=log,
            stderr=log,
            pass_fds=[bound],
        )
        port = listener.getsockname()[1]
    try:
        yield Fleet(process, port, metrics, home / "log")
    finally:
        process.terminate()
        try:
            process.wait(PROMPT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.mark.parametrize("options", [("--preload",), ()], ids=["preloaded", "loaded by each"])
def test_workers_die_and_are_replaced_and_nothing_that_was_counted_is_lost(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    with serving(tmp_path, "--worker-class", "uvicorn_worker.UvicornWorker", *options) as fleet:
        fleet.has_started(2)
        sessions: list[Session] = []
        resumed = 0

        def meet(workers: int) -> None:
            """Opens sessions until so many workers have one, each with a resumed call and an open stream."""
            nonlocal resumed
            limit = time.monotonic() + PATIENCE
            while len({session.pid for session in sessions}) < workers:
                assert time.monotonic() < limit, fleet.log
                session = Session(fleet)
                session.resume()
                sessions.append(session)
                resumed += 1
            fleet.tells(**{"attempts_total proven": resumed}, open_streams=len(sessions), open_sessions=len(sessions))

        meet(2)
        # The one that serves the metrics is among them, unless that is the parent.
        for number, victim in enumerate({session.pid for session in sessions}, 1):
            os.kill(victim, signal.SIGKILL)
            for session in [each for each in sessions if each.pid == victim]:
                session.close()
                sessions.remove(session)
            fleet.has_started(2 + number)
            meet(2)
        for session in sessions:
            session.close()
        fleet.tells(**{"attempts_total proven": resumed}, open_streams=0)

        began = time.monotonic()
        fleet.process.send_signal(signal.SIGTERM)
        assert fleet.process.wait(PATIENCE) == 0
        assert time.monotonic() - began < PROMPT, fleet.log
        assert fleet.log.count("Finished server process") == 2, fleet.log
        assert "Traceback" not in fleet.log
        assert "otel-mcp-resume failed" not in fleet.log

"""One cause, one page: a real Alertmanager with the example configuration is asked whom it calls.

No static check knows what an inhibition does.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest

pytestmark = pytest.mark.prom

GAP = {"alertname": "McpResumeSilentGap", "severity": "critical", "generation": "streamable_http"}
CLIENT = {**GAP, "job": "agents", "side": "client", "stream": "standalone", "reason": "session_changed"}
SERVER = {**GAP, "job": "tools", "side": "server", "stream": "standalone", "reason": "unknown_token_accepted"}


class Alertmanager:
    """A real one, with the example's configuration, whose receivers are all the test's."""

    def __init__(self, port: int, calls: Queue[tuple[str, dict[str, Any]]]) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._calls = calls

    def fire(self, *alerts: dict[str, str]) -> None:
        body = json.dumps([{"labels": labels, "annotations": {"summary": "."}} for labels in alerts]).encode()
        request = urllib.request.Request(f"{self._url}/api/v2/alerts", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=5).close()

    def suppressed(self) -> set[str]:
        with urllib.request.urlopen(f"{self._url}/api/v2/alerts", timeout=5) as answer:
            alerts = json.load(answer)
        return {name(alert["labels"]) for alert in alerts if alert["status"]["state"] == "suppressed"}

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=1) as answer:
                return int(answer.status) == 200
        except OSError:
            return False

    def calls(self) -> list[tuple[str, set[str]]]:
        """Who was called about what, until nobody is called any more."""
        found: list[tuple[str, set[str]]] = []
        wait = 10.0
        while True:
            try:
                path, body = self._calls.get(timeout=wait)
            except Empty:
                return sorted(found, key=str)
            found.append((path, {name(alert["labels"]) for alert in body["alerts"]}))
            wait = 2.0


def name(labels: dict[str, str]) -> str:
    return "/".join(labels[key] for key in ("alertname", "severity", "job") if key in labels)


@contextmanager
def webhooks() -> Iterator[tuple[int, Queue[tuple[str, dict[str, Any]]]]]:
    calls: Queue[tuple[str, dict[str, Any]]] = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            calls.put((self.path.strip("/"), body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1], calls
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def alertmanager(tool: Callable[[str], str], directory: Path, tmp_path: Path) -> Iterator[Alertmanager]:
    binary = tool("prometheus-alertmanager")
    with webhooks() as (hooks, calls), socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        text = (directory / "alertmanager.example.yml").read_text().replace("localhost:9095", f"127.0.0.1:{hooks}")
        (tmp_path / "config.yml").write_text(re.sub(r"group_wait: \w+", "group_wait: 1s", text))
        command = [binary, f"--config.file={tmp_path}/config.yml", f"--storage.path={tmp_path}/data"]
        command += [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        manager = Alertmanager(port, calls)
        try:
            deadline = time.monotonic() + 30
            while not manager.is_ready():
                assert process.poll() is None, (tmp_path / "log").read_text()
                assert time.monotonic() < deadline, (tmp_path / "log").read_text()
                time.sleep(0.1)
            yield manager
        finally:
            process.terminate()
            process.wait(timeout=10)


def test_one_bad_deploy_is_one_page(alertmanager: Alertmanager) -> None:
    """Both sides see the gap, and everything doubtful about it, and the budget burns."""
    doubt = {"severity": "warning", "generation": "streamable_http"}
    alertmanager.fire(
        CLIENT,
        {**CLIENT, "reason": "event_id_regression"},
        SERVER,
        {**doubt, "alertname": "McpResumeUnprovenRatio", "job": "agents", "side": "client"},
        {**doubt, "alertname": "McpResumeSessionsChanging", "job": "agents", "side": "client"},
        {**doubt, "alertname": "McpResumeBoundaryViolated", "job": "tools", "side": "server"},
        {"alertname": "McpResumeContinuityBudgetBurn", "severity": "critical", "job": "agents"},
        {"alertname": "McpResumeContinuityBudgetBurn", "severity": "warning", "job": "agents"},
    )
    page = {"McpResumeSilentGap/critical/agents", "McpResumeSilentGap/critical/tools"}
    assert alertmanager.calls() == [("pager", page)]
    assert alertmanager.suppressed() == {
        "McpResumeUnprovenRatio/warning/agents",
        "McpResumeSessionsChanging/warning/agents",
        "McpResumeBoundaryViolated/warning/tools",
        "McpResumeContinuityBudgetBurn/critical/agents",
        "McpResumeContinuityBudgetBurn/warning/agents",
    }


def test_a_warning_yields_to_its_own_page_and_to_no_other(alertmanager: Alertmanager) -> None:
    loop = {"alertname": "McpResumeReconnectLoop", "generation": "streamable_http", "side": "client"}
    alertmanager.fire(
        {**loop, "severity": "critical", "job": "agents", "stream": "request"},
        {**loop, "severity": "warning", "job": "agents", "stream": "request"},
        {**loop, "severity": "warning", "job": "others", "stream": "request"},
        {"alertname": "McpResumeDuplicateCalls", "severity": "warning", "job": "agents", "side": "client"},
        {"alertname": "McpResumeLedgerEvictions", "severity": "info", "job": "agents", "side": "client"},
    )
    assert alertmanager.calls() == [
        ("chat", {"McpResumeLedgerEvictions/info/agents"}),
        ("pager", {"McpResumeReconnectLoop/critical/agents"}),
        ("tickets", {"McpResumeDuplicateCalls/warning/agents"}),
        ("tickets", {"McpResumeReconnectLoop/warning/others"}),
    ]
    assert alertmanager.suppressed() == {"McpResumeReconnectLoop/warning/agents"}


def test_a_disclosure_calls_security_too_and_is_silenced_by_nothing(alertmanager: Alertmanager) -> None:
    foreign = {"alertname": "McpResumeCrossSessionDelivery", "severity": "critical", "rule": "cross_session_replay"}
    lost = {"alertname": "McpResumeEventsUndelivered", "severity": "critical", "generation": "streamable_http"}
    alertmanager.fire(
        {**foreign, "job": "tools", "side": "server", "generation": "streamable_http"},
        SERVER,
        {**lost, "job": "mail", "stream": "standalone"},
        {**SERVER, "job": "mail", "reason": "undelivered"},
        {**SERVER, "job": "mail", "reason": "session_changed"},
    )
    assert alertmanager.calls() == [
        ("pager", {"McpResumeCrossSessionDelivery/critical/tools"}),
        ("pager", {"McpResumeEventsUndelivered/critical/mail"}),
        ("pager", {"McpResumeSilentGap/critical/mail"}),
        ("security", {"McpResumeCrossSessionDelivery/critical/tools"}),
    ]
    assert alertmanager.suppressed() == {"McpResumeSilentGap/critical/tools", "McpResumeSilentGap/critical/mail"}

"""A real trace store: the server of MLflow (Apache-2.0), which takes OTLP, in an environment of its own."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from otel_mcp_resume.cli.demo.ports import metrics_ports

VERSION = "3.17.2"
NEEDED = [
    "flask",
    "flask-cors",
    "sqlalchemy",
    "alembic",
    "graphene",
    "huey",
    "aiohttp",
    "cryptography",
    "numpy",
    "pandas",
]
"""What the server needs of all that MLflow depends on: half the size, and a fraction of the time to install."""
START_LIMIT = 100.0
"""Seconds. Ten are enough where nothing else runs."""


class Store:
    """A running one."""

    def __init__(self, url: str) -> None:
        self.url = url

    def search(self, condition: str) -> list[str]:
        """The traces that have such a span."""
        experiment = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}
        asked = {"locations": [experiment], "filter": condition, "max_results": 100}
        found = self._ask("/api/3.0/mlflow/traces/search", json.dumps(asked).encode())
        return [str(each["trace_id"]) for each in found.get("traces", ())]

    def spans(self, trace: str) -> list[dict[str, Any]]:
        """All spans of a trace, with attributes as they were sent."""
        spans: list[dict[str, Any]] = self._ask(f"/ajax-api/3.0/mlflow/get-trace-artifact?request_id={trace}")["spans"]
        for span in spans:
            span["attributes"] = {key: json.loads(value) for key, value in span["attributes"].items()}
        return spans

    def _ask(self, path: str, body: bytes | None = None) -> Any:
        request = urllib.request.Request(self.url + path, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as response:
            return json.load(response)


def linked(link: dict[str, Any], spans: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Where a link leads. MLflow writes ids of links as it got them, or in its own form."""
    wanted = str(link["span_id"]).removeprefix("0x")
    (found,) = [span for span in spans if wanted in (span["span_id"], base64.b64decode(span["span_id"]).hex())]
    return found


@contextmanager
def store(home: Path, uv: Any) -> Iterator[Store]:
    """Installs it in `home` and runs it until the block is left."""
    python = home / "env" / "bin" / "python"
    uv("venv", "--quiet", "--python", sys.executable, home / "env")
    uv("pip", "install", "--quiet", "--python", python, f"mlflow-skinny=={VERSION}", *NEEDED)
    uv("pip", "install", "--quiet", "--python", python, "--no-deps", f"mlflow=={VERSION}")
    (port,) = metrics_ports(1, None)
    command = [python.with_name("mlflow"), "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{home}/store.db", "--artifacts-destination", str(home / "artifacts")]
    environ = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            list(map(str, command)), env=environ, stdout=log, stderr=log, start_new_session=True, cwd=home
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/health", process, home / "log")
        yield Store(url)
    finally:
        for how in (signal.SIGTERM, signal.SIGKILL):  # its workers outlive it otherwise
            with suppress(ProcessLookupError):
                os.killpg(process.pid, how)
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.5)
    raise AssertionError(f"the store did not start:\n{log.read_text()[-2000:]}")

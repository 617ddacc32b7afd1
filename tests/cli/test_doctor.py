"""`otel-mcp-resume doctor` as users run it: the console script of a fresh virtual environment."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Environment

BREAK_MCP = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == 'mcp.client.streamable_http':
            raise ImportError('no such thing any more')
sys.meta_path.insert(0, Finder())
"""
LOSE_A_HOOK = """
import wrapt
def lose(module):
    del module.StreamableHTTPTransport.handle_get_stream
wrapt.register_post_import_hook(lose, 'mcp.client.streamable_http')
"""


def doctor(environment: Environment, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return environment.call("otel-mcp-resume", "doctor", *options, **variables)


def diagnosed(environment: Environment, **variables: str) -> tuple[dict[str, Any], int]:
    run = doctor(environment, "--json", **variables)
    assert run.stderr == ""
    found: dict[str, Any] = json.loads(run.stdout)
    return found, run.returncode


def in_force(found: dict[str, Any]) -> list[str]:
    return [each["way"] for each in found["activations"] if each["in_force"]]


@pytest.fixture
def sitecustomize(tmp_path: Path) -> Path:
    return tmp_path / "sitecustomize.py"


@pytest.fixture
def without_startup(installed: Environment) -> Iterator[Environment]:
    """The environment as a broken installation leaves it. Tests of one worker run one after the other."""
    startup = installed.site_packages / "otel_mcp_resume.pth"
    aside = startup.with_suffix(".aside")
    startup.rename(aside)
    yield installed
    aside.rename(startup)


def test_enabled_and_healthy(installed: Environment) -> None:
    found, code = diagnosed(installed, OTEL_MCP_RESUME="1")
    assert code == 0
    assert (found["enabled"], found["blind"], found["problems"]) == (True, False, [])
    assert found["mcp_version"] == version("mcp")
    assert found["hooks"]
    assert all(found["hooks"].values())
    assert in_force(found) == ["environment variable"]


@pytest.mark.parametrize("variables", [{}, {"OTEL_MCP_RESUME": "0"}])
def test_not_enabled_tells_what_would_be(installed: Environment, variables: dict[str, str]) -> None:
    found, code = diagnosed(installed, **variables)
    assert code == 0
    assert (found["enabled"], found["blind"]) == (False, False)
    assert all(found["hooks"].values())
    assert in_force(found) == []
    text = doctor(installed, **variables).stdout
    assert "Not enabled" in text
    assert "Hooks, if it were enabled" in text


@pytest.mark.full
def test_a_missing_hook_is_blindness(installed: Environment, sitecustomize: Path) -> None:
    sitecustomize.write_text(LOSE_A_HOOK)
    found, code = diagnosed(installed, OTEL_MCP_RESUME="1", PYTHONPATH=str(sitecustomize.parent))
    assert code == 1
    assert found["blind"]
    lost = "StreamableHTTPTransport.handle_get_stream"
    assert [hook for hook, there in found["hooks"].items() if not there] == [lost]
    assert any(lost in problem for problem in found["problems"])
    found, code = diagnosed(installed, PYTHONPATH=str(sitecustomize.parent))
    assert (code, found["blind"]) == (0, False)


@pytest.mark.full
def test_a_transport_that_cannot_be_imported_is_blindness(installed: Environment, sitecustomize: Path) -> None:
    sitecustomize.write_text(BREAK_MCP)
    found, code = diagnosed(installed, OTEL_MCP_RESUME="1", PYTHONPATH=str(sitecustomize.parent))
    assert code == 1
    assert not found["mcp_importable"]
    assert any("no such thing any more" in problem for problem in found["problems"])


@pytest.mark.full
def test_a_startup_file_that_is_gone_is_blindness(without_startup: Environment) -> None:
    found, code = diagnosed(without_startup, OTEL_MCP_RESUME="1")
    assert code == 1
    assert all(found["hooks"].values())
    assert any("startup file" in problem for problem in found["problems"])


@pytest.mark.full
def test_without_mcp_there_is_nothing_to_be_blind_to(installed: Environment, sitecustomize: Path) -> None:
    sitecustomize.write_text("import sys; sys.modules['mcp'] = None")
    found, code = diagnosed(installed, OTEL_MCP_RESUME="1", PYTHONPATH=str(sitecustomize.parent))
    assert code == 0
    assert not found["mcp_importable"]
    assert found["activations"][0]["detail"] == "OTEL_MCP_RESUME is set, and waits for mcp"


@pytest.mark.full
def test_a_variable_that_is_neither_is_not_called_unset(installed: Environment) -> None:
    found, _ = diagnosed(installed, OTEL_MCP_RESUME="on")
    assert not found["enabled"]
    assert found["activations"][0]["detail"].startswith("OTEL_MCP_RESUME is neither 1 nor 0")


@pytest.mark.full
def test_under_opentelemetry_instrument(installed: Environment) -> None:
    script = shutil.which("otel-mcp-resume", path=str(installed.python.parent))
    assert script
    run = installed.call("opentelemetry-instrument", script, "doctor", "--json", OTEL_METRICS_EXPORTER="none")
    found = json.loads(run.stdout)
    assert run.returncode == 0
    assert (found["enabled"], found["blind"]) == (True, False)
    assert in_force(found) == ["opentelemetry-instrument"]
    assert "OpenTelemetry: the application's meter provider, and nowhere if it sets none" in found["metrics"]


def test_settings_say_where_they_came_from(installed: Environment) -> None:
    found, _ = diagnosed(
        installed,
        OTEL_MCP_RESUME_PROOF_TIMEOUT="3",
        OTEL_MCP_RESUME_IDS_KEY="a secret",
        OTEL_MCP_RESUME_MAX_STREAMS="many",
    )
    settings = {each["name"]: (each["value"], each["source"]) for each in found["settings"]}
    assert settings["proof_timeout"] == ("3 s", "environment OTEL_MCP_RESUME_PROOF_TIMEOUT")
    assert settings["max_streams"] == ("20000", "default")
    assert settings["ids_key"] == ("given", "environment OTEL_MCP_RESUME_IDS_KEY")
    assert any("OTEL_MCP_RESUME_MAX_STREAMS='many'" in problem for problem in found["problems"])
    assert "a secret" not in json.dumps(found)


def test_it_serves_nothing_and_sees_who_does(installed: Environment) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        taken, _ = diagnosed(installed, OTEL_MCP_RESUME="1", OTEL_EXPORTER_PROMETHEUS_PORT=port)
        other.settimeout(0)
        with pytest.raises(BlockingIOError):
            other.accept()  # nobody has even knocked
    free, _ = diagnosed(installed, OTEL_MCP_RESUME="1", OTEL_EXPORTER_PROMETHEUS_PORT=port)
    assert "taken at this moment" in taken["metrics"][0]
    assert free["metrics"][0] == f"http://localhost:{port}/metrics"
    with socket.create_server(("127.0.0.1", int(port))):
        pass


@pytest.mark.full
def test_it_says_when_nothing_would_be_served_or_sent(installed: Environment) -> None:
    nowhere = {"OTEL_EXPORTER_PROMETHEUS_HOST": "no.such.host.invalid", "OTEL_EXPORTER_PROMETHEUS_PORT": "9464"}
    host, _ = diagnosed(installed, OTEL_MCP_RESUME="1", **nowhere)
    assert "nothing would be served" in host["metrics"][0]
    endpoint = {"OTEL_MCP_RESUME_METRICS": "otel", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}
    otlp, _ = diagnosed(installed, OTEL_MCP_RESUME="1", **endpoint)
    assert "http://localhost:4318" in otlp["metrics"][0]
    with socket.create_server(("127.0.0.1", 65_535)):
        last, _ = diagnosed(installed, OTEL_MCP_RESUME="1", OTEL_EXPORTER_PROMETHEUS_PORT="65535")
    assert "another application would serve nothing" in last["metrics"][0]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"OTEL_MCP_RESUME_METRICS": "none"}, "nowhere"),
        ({"OTEL_EXPORTER_PROMETHEUS_PORT": "none"}, "no /metrics of our own"),
        ({"OTEL_EXPORTER_PROMETHEUS_PORT": "0"}, "on a free port"),
        ({"PROMETHEUS_MULTIPROC_DIR": "/nowhere/at/all"}, "/nowhere/at/all, which does not exist"),
    ],
)
@pytest.mark.full
def test_where_metrics_go(installed: Environment, variables: dict[str, str], expected: str) -> None:
    found, _ = diagnosed(installed, **variables)
    assert expected in "\n".join(found["metrics"])


def test_the_page_is_for_a_person(installed: Environment) -> None:
    text = doctor(installed, OTEL_MCP_RESUME="1").stdout
    assert text.splitlines()[1] == "Enabled, all hooks in place"
    assert max(map(len, text.splitlines()[1:])) <= 110  # the first line has a path in it


def test_help_and_wrong_calls(installed: Environment) -> None:
    assert "doctor" in installed.call("otel-mcp-resume", "--help").stdout
    assert installed.call("otel-mcp-resume", "--version").stdout.startswith("otel-mcp-resume 0.")
    assert installed.call("otel-mcp-resume").returncode == 2
    assert installed.call("otel-mcp-resume", "cure").returncode == 2


def test_doctor_does_not_import_the_demo_nor_mcp(installed: Environment) -> None:
    script = """
    import sys
    from otel_mcp_resume.cli import main
    main(["doctor", "--json"])
    loaded = [n for n in sys.modules if n.split(".")[0] == "mcp" or n.startswith("otel_mcp_resume.cli.demo")]
    assert loaded == [], loaded
    """
    assert installed.run(script).returncode == 0

"""What starts it all: provisioning, the Prometheus configuration and the compose file fit together."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from otel_mcp_resume.cli.demo.run import FIRST_PORT
from otel_mcp_resume.cli.demo.scenes import SCENES


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.fixture
def compose(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = read(directory / "compose.yml")["services"]
    return found


@pytest.fixture
def sources(directory: Path) -> dict[str, Any]:
    found = read(directory / "provisioning" / "datasources" / "mcp-resume.yml")
    assert found["apiVersion"] == 1
    return {each["uid"]: each for each in found["datasources"]}


@pytest.mark.prom
def test_promtool_accepts_the_configuration_with_its_rules(tool: Callable[[str], str], directory: Path) -> None:
    command = [tool("promtool"), "check", "config", str(directory / "prometheus.yml")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "3 rule files found" in run.stdout


def test_prometheus_scrapes_every_process_of_the_demo(directory: Path) -> None:
    (job,) = read(directory / "prometheus.yml")["scrape_configs"]
    (static,) = job["static_configs"]
    processes = sum(scene.processes for scene in SCENES)
    assert static["targets"] == [f"127.0.0.1:{FIRST_PORT + each}" for each in range(processes)]


def test_an_exemplar_leads_to_its_trace(sources: dict[str, Any]) -> None:
    """By the name that the exemplars have."""
    assert sources["prometheus"]["type"] == "prometheus"
    (destination,) = sources["prometheus"]["jsonData"]["exemplarTraceIdDestinations"]
    assert destination["name"] == "trace_id"
    assert sources[destination["datasourceUid"]]["type"] == "tempo"


def test_the_scrape_interval_is_known_to_grafana(sources: dict[str, Any], directory: Path) -> None:
    interval = read(directory / "prometheus.yml")["global"]["scrape_interval"]
    assert sources["prometheus"]["jsonData"]["timeInterval"] == interval


def test_dollars_that_grafana_must_not_read_as_variables_are_doubled(directory: Path) -> None:
    for path in directory.glob("provisioning/**/*.yml"):
        assert re.findall(r"(?<!\$)\$(?!\$)", path.read_text().replace("$$", "")) == []


def test_the_alerts_of_grafana_ask_the_same_source(sources: dict[str, Any], directory: Path) -> None:
    text = (directory.parent / "alerts" / "grafana" / "mcp-resume.yml").read_text()
    assert set(re.findall(r"datasourceUid: (\S+)", text)) - {"__expr__"} == {"prometheus"}
    assert "prometheus" in sources


def test_what_is_mounted_is_there(compose: dict[str, Any], directory: Path) -> None:
    for service in compose.values():
        for volume in service.get("volumes", []):
            here, there, mode = volume.split(":")
            assert (directory / here).exists()
            assert there.startswith("/")
            assert mode == "ro"


def test_every_dashboard_lies_where_its_provider_looks(compose: dict[str, Any], directory: Path) -> None:
    (provider,) = read(directory / "provisioning" / "dashboards" / "mcp-resume.yml")["providers"]
    place = provider["options"]["path"]
    mounted = {volume.split(":")[1] for volume in compose["grafana"]["volumes"]}
    assert {f"{place}/{path.name}" for path in directory.glob("mcp-resume-*.json")} <= mounted
    assert provider["allowUiUpdates"] is False  # the dashboards are not editable either
    assert {f"/etc/grafana/provisioning/{kind}" for kind in ("datasources", "dashboards")} <= mounted


def test_addresses_name_services_and_ports_that_there_are(
    compose: dict[str, Any], sources: dict[str, Any], directory: Path
) -> None:
    prometheus = read(directory / "prometheus.yml")
    assert prometheus["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] == ["alertmanager:9093"]
    assert "alertmanager" in compose
    assert compose["prometheus"]["network_mode"] == "service:demo"  # so it answers there
    assert sources["prometheus"]["url"] == "http://demo:9090"
    tempo = read(directory / "tempo.yml")
    assert sources["tempo"]["url"] == f"http://tempo:{tempo['server']['http_listen_port']}"
    received = tempo["distributor"]["receivers"]["otlp"]["protocols"]["http"]["endpoint"].rpartition(":")[2]
    assert compose["demo"]["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"] == f"http://tempo:{received}"


def test_nothing_listens_beyond_this_machine(compose: dict[str, Any]) -> None:
    ports = [port for service in compose.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_images_have_versions(compose: dict[str, Any]) -> None:
    for service in compose.values():
        assert re.search(r":v?\d+\.\d+", service["image"]), service["image"]


def test_the_feature_for_exemplars_is_on(compose: dict[str, Any]) -> None:
    assert "--enable-feature=exemplar-storage" in compose["prometheus"]["command"]


def test_the_files_are_text_with_an_end(directory: Path) -> None:
    for path in [*directory.rglob("*.yml"), *directory.glob("*.json")]:
        text = path.read_text(encoding="utf-8")
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        if path.suffix == ".json":
            json.loads(text)

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from otel_mcp_resume.cli.demo.child import Child, ChildError, environment

SCRIPTS = {
    "polite": "import sys; from otel_mcp_resume.cli.demo.orders import say\n"
    "print('noise'); say('ready', port=7)\nfor line in sys.stdin: say('heard', line=line.strip())",
    "broken": "import sys; sys.exit('no such thing')",
    "stubborn": "import time; time.sleep(60)",
}


@pytest.fixture(autouse=True)
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that a child can be told to run."""
    for name, text in SCRIPTS.items():
        (tmp_path / f"demo_{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


async def start(name: str, log: list[str]) -> Child:
    return await Child.start(name, 9464, f"demo_{name}", log=log.append)


def test_it_says_hears_and_ends() -> None:
    async def run() -> None:
        log: list[str] = []
        child = await start("polite", log)
        assert (await child.until("ready"))["port"] == 7
        child.tell("play")
        assert (await child.until("heard"))["line"] == "play"
        child.tell("close")
        await child.until("heard", line="close")
        await child.end()
        assert log == ["noise"]

    asyncio.run(asyncio.wait_for(run(), 60))


def test_its_last_words_are_told_when_it_ends_too_early() -> None:
    async def run() -> None:
        child = await start("broken", [])
        with pytest.raises(ChildError, match="broken ended unexpectedly:\nno such thing"):
            await child.until("ready")
        await child.end()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_one_that_does_not_listen_is_ended_by_force() -> None:
    async def run() -> None:
        child = await start("stubborn", [])
        await child.end()
        with pytest.raises(ChildError):
            await child.until("ready")

    asyncio.run(asyncio.wait_for(run(), 30))


def test_its_environment_switches_the_plugin_on_whatever_ours_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_MCP_RESUME", "0")
    monkeypatch.setenv("OTEL_MCP_RESUME_IDS", "hash")
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "/somewhere")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    monkeypatch.setenv("NO_PROXY", "internal")
    env = environment("resume-client", 9470)
    assert env["OTEL_MCP_RESUME"] == "1"
    assert env["OTEL_EXPORTER_PROMETHEUS_PORT"] == "9470"
    assert env["OTEL_SERVICE_NAME"] == "demo-resume-client"
    assert env["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector:4318"
    assert env["NO_PROXY"] == "internal,127.0.0.1"
    assert not {"OTEL_MCP_RESUME_IDS", "PROMETHEUS_MULTIPROC_DIR"} & env.keys()

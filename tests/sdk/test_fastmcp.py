"""FastMCP's client, which brings a transport of its own around that of the SDK, in an environment of its own."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.conftest import Environment, Uv
from tests.sdk.client_world import RESUMES, resumes, served

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not RESUMES, reason="before 1.23 the SDK re-opens no stream of a request"),
]

CALL = """
import asyncio, json, sys
from fastmcp import Client
from otel_mcp_resume import activate

async def main():
    async with Client(sys.argv[1]) as client:
        result = await client.call_tool('t', {})
        return result.content[0].text

text = asyncio.run(main())
plugin = activate.current()
series = {}
for family in plugin.metrics.collect() if plugin else ():
    for sample in family.samples:
        if sample.name in ('mcp_resume_attempts_total', 'mcp_resume_internal_errors_total') and sample.value:
            series[' '.join(sample.labels.values())] = sample.value
print(json.dumps([text, series]))
"""


@pytest.fixture(scope="module")
def fastmcp(uv: Uv, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """A fresh virtual environment with the newest FastMCP that goes with this mcp, and the wheel."""
    home = tmp_path_factory.mktemp("fastmcp") / "env"
    uv("venv", "--quiet", "--python", sys.executable, home)
    python = home / "bin" / "python"
    uv("pip", "install", "--quiet", "--python", python, f"mcp=={version('mcp')}", "fastmcp", wheel)
    yield Environment(python)
    shutil.rmtree(home, ignore_errors=True)


@pytest.mark.parametrize("enabled", ["1", "0"])
def test_a_call_of_fastmcps_client_is_cut_and_resumed(fastmcp: Environment, enabled: str) -> None:
    with served(*resumes()) as peer:
        run = fastmcp.call(fastmcp.python, "-c", CALL, peer.url, OTEL_MCP_RESUME=enabled)
        assert peer.seen(method="GET", token="1") == 1
    assert run.returncode == 0, run.stderr
    text, series = json.loads(run.stdout.splitlines()[-1])
    assert text == "done"
    proven = {"client streamable_http streamable_http request proven replayed_event": 1}
    assert series == (proven if enabled == "1" else {})

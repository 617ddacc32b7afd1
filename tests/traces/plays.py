"""Plays scenes of the demo, whose processes send what they see to a receiver of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from unittest.mock import patch

from otel_mcp_resume.cli.demo.ports import metrics_ports
from otel_mcp_resume.cli.demo.result import Result
from otel_mcp_resume.cli.demo.scenes import SCENES
from otel_mcp_resume.cli.demo.stage import Stage
from otel_mcp_resume.cli.demo.terminal import Terminal

BY_NAME = {scene.name: scene for scene in SCENES}


def play(name: str, variables: Mapping[str, str]) -> Result:
    """One play, from the first process to the end of the last: all that they had to send is sent."""
    with _environ(variables):
        return asyncio.run(_play(name))


@contextmanager
def _environ(variables: Mapping[str, str]) -> Iterator[None]:
    with patch.dict("os.environ", variables):
        yield


async def _play(name: str) -> Result:
    scene = BY_NAME[name]
    stage = Stage(scene, metrics_ports(scene.processes, None), Terminal(verbose=False))
    try:
        await stage.open()
        return await stage.play()
    finally:
        await stage.close()


def to(url: str) -> dict[str, str]:
    """The environment of processes that send to `url`, soon."""
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_BSP_SCHEDULE_DELAY": "200"}

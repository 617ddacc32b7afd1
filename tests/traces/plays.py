"""Plays scenes of the demo, whose processes send what they see to a receiver of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from unittest.mock import patch

from otel_mcp_resume.cli.demo.child import Child
from otel_mcp_resume.cli.demo.ports import metrics_ports
from otel_mcp_resume.cli.demo.result import Result
from otel_mcp_resume.cli.demo.scenes import SCENES
from otel_mcp_resume.cli.demo.stage import Stage
from otel_mcp_resume.cli.demo.terminal import Terminal

BY_NAME = {scene.name: scene for scene in SCENES}


class Play:
    """A scene whose processes are up."""

    def __init__(self, stage: Stage, loop: asyncio.AbstractEventLoop) -> None:
        self._stage = stage
        self._loop = loop

    @property
    def children(self) -> list[Child]:
        return self._stage.children

    def port(self, server: str) -> int:
        return self._stage.port(server)

    def play(self) -> Result:
        """One play."""
        return self._loop.run_until_complete(self._stage.play())


@contextmanager
def playing(name: str, variables: Mapping[str, str]) -> Iterator[Play]:
    """Until the block is left, and every process has ended: all that they had to send is sent then."""
    scene = BY_NAME[name]
    loop = asyncio.new_event_loop()
    with patch.dict("os.environ", variables):
        stage = Stage(scene, metrics_ports(scene.processes, None), Terminal(verbose=False))
        try:
            loop.run_until_complete(stage.open())
            yield Play(stage, loop)
        finally:
            loop.run_until_complete(stage.close())
            loop.close()


def play(name: str, variables: Mapping[str, str]) -> Result:
    """One play, from the first process to the end of the last."""
    with playing(name, variables) as scene:
        return scene.play()


def to(url: str) -> dict[str, str]:
    """The environment of processes that send to `url`, soon."""
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_BSP_SCHEDULE_DELAY": "200"}

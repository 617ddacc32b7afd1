"""The demo from its first process to its last: set up, play, judge, and go on serving if asked to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import cycle, islice
from typing import TypeVar

from otel_mcp_resume.cli.demo.child import ChildError
from otel_mcp_resume.cli.demo.ports import metrics_ports
from otel_mcp_resume.cli.demo.result import Result
from otel_mcp_resume.cli.demo.scenes import Scene
from otel_mcp_resume.cli.demo.stage import Stage
from otel_mcp_resume.cli.demo.terminal import Terminal

__all__ = ["Plan", "run"]

T = TypeVar("T")

FIRST_PORT = 9500
"""Where `--serve` begins to look for ports, so that a scrape configuration can be written once. An application looks
from 9464 to 9480: started beside the demo, it would find none of those free."""

PAUSE = 5
"""Seconds between two plays while serving: every scene comes often enough for a rate over five minutes."""

GOING_ON = """\
Go on:
  OTEL_MCP_RESUME=1 python your_app.py   the same for an application of yours, without a change to its code
  otel-mcp-resume doctor                 whether the plugin is in place, and where its metrics go
  otel-mcp-resume demo --serve           keeps the /metrics of all these processes up, to be scraped
  otel-mcp-resume demo --verbose         every exchange on the wire
"""


@dataclass(frozen=True)
class Plan:
    """What is asked of the demo."""

    scenes: Sequence[Scene]
    serve: bool
    verbose: bool


async def run(plan: Plan) -> int:
    """Plays everything. The exit status: 1 if a scene did not give the verdict that it must."""
    terminal = Terminal(verbose=plan.verbose)
    processes = sum(scene.processes for scene in plan.scenes)
    ports = iter(metrics_ports(processes, FIRST_PORT if plan.serve else None))
    stages = [Stage(scene, list(islice(ports, scene.processes)), terminal) for scene in plan.scenes]
    try:
        terminal.print(f"Starting {processes} processes on mcp {version('mcp')}, enabled by OTEL_MCP_RESUME=1 alone.")
        await _all(stage.open() for stage in stages)
        results = await _all(_play(terminal, stage) for stage in stages)
        _report(terminal, results)
        if plan.serve:
            await _serve(terminal, stages)
        terminal.print(GOING_ON)
    except ChildError as error:
        terminal.print(str(error))
        return 1
    finally:
        await _all(stage.close() for stage in stages)
    return 0 if all(result.as_wanted for result in results) else 1


async def _all(steps: Iterable[Awaitable[T]]) -> list[T]:
    """Takes all steps at once, and waits for all, also if one fails."""
    tasks = [asyncio.ensure_future(step) for step in steps]
    await asyncio.gather(*tasks, return_exceptions=True)
    return [task.result() for task in tasks]


async def _play(terminal: Terminal, stage: Stage) -> Result:
    stage.say(stage.scene.story)
    result = await stage.play()
    stage.say(f"verdict: {result.verdict}")
    for finding, count in sorted(result.counts.items()):
        terminal.detail(stage.scene.name, f"{count} x {finding} {finding.stream}")
    return result


def _report(terminal: Terminal, results: Sequence[Result]) -> None:
    terminal.print()
    terminal.table([(result.scene.name, result.noticed, result.verdict, result.as_wanted) for result in results])
    terminal.print()


async def _serve(terminal: Terminal, stages: Sequence[Stage]) -> None:
    """Plays one scene after the other, slowly, until it is cancelled."""
    children = [child for stage in stages for child in stage.children]
    for child in children:
        terminal.print(f"  http://127.0.0.1:{child.metrics_port}/metrics  {child.name}")
    targets = ", ".join(f'"127.0.0.1:{child.metrics_port}"' for child in children)
    terminal.print(f"\nFor Prometheus:\n  - job_name: mcp-demo\n    static_configs:\n      - targets: [{targets}]\n")
    terminal.print("Playing on, one scene at a time. Ctrl-C ends everything.")
    for stage in cycle(stages):
        await asyncio.sleep(PAUSE)
        await _play(terminal, stage)

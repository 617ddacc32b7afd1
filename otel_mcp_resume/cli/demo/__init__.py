"""`otel-mcp-resume demo`: a small fleet of real servers and clients, and what can go wrong between them."""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from otel_mcp_resume.cli.demo.scenes import SCENES

if TYPE_CHECKING:
    from argparse import (
        ArgumentParser,
        Namespace,
        _SubParsersAction,  # pyright: ignore[reportPrivateUsage] - argparse has no other name for it
    )

__all__ = ["add_parser"]

OLDEST_MCP = (1, 23)
"""Before this release the SDK's client did not resume by itself."""

HINT = "pip install 'otel-mcp-resume[demo]'"


def add_parser(subparsers: _SubParsersAction[ArgumentParser]) -> None:
    """Adds the command. The parsed arguments have `run`, which takes them and returns the exit status."""
    parser = subparsers.add_parser(
        "demo",
        help="play what can go wrong on resumption, and show the verdicts",
        description="A small fleet of real MCP servers and clients on the loopback, in processes of their own.",
        epilog="scenes: " + "; ".join(f"{scene.name}: {scene.story}" for scene in SCENES),
    )
    names = [scene.name for scene in SCENES]
    parser.add_argument("--scene", action="append", choices=names, help="play this one only; can be repeated")
    parser.add_argument("--serve", action="store_true", help="keep the fleet and its /metrics up, and play on slowly")
    parser.add_argument("--verbose", action="store_true", help="show every exchange on the wire")
    parser.set_defaults(run=main)


def main(arguments: Namespace) -> int:
    """The exit status: 0 if every verdict is the one that its scene must give, 1 if not, 2 if it can't be played."""
    if lacking := missing():
        print(f"otel-mcp-resume demo: {lacking}. {HINT}", file=sys.stderr)
        return 2
    from otel_mcp_resume.cli.demo.run import Plan, run

    scenes = [scene for scene in SCENES if not arguments.scene or scene.name in arguments.scene]
    try:
        return asyncio.run(run(Plan(scenes, serve=arguments.serve, verbose=arguments.verbose)))
    except KeyboardInterrupt:
        print("Ended.")
        return 130


def missing() -> str:
    """What this environment lacks, in words, or nothing."""
    for package in ("mcp", "uvicorn", "starlette"):
        if find_spec(package) is None:
            return f"the package {package} is not installed"
    try:
        found = version("mcp")
    except PackageNotFoundError:
        return "mcp has no version"
    if tuple(map(int, found.split(".")[:2])) < OLDEST_MCP:
        return f"mcp {found} is installed, and its client can't resume by itself before {OLDEST_MCP[0]}.{OLDEST_MCP[1]}"
    return ""

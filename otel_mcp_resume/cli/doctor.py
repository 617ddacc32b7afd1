"""`otel-mcp-resume doctor`: is the plugin on, does it see everything, and where do its numbers go."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from otel_mcp_resume.cli.diagnosis import Activation, Diagnosis, diagnose

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction  # pyright: ignore[reportPrivateUsage] - argparse has no other name for it

__all__ = ["add_parser", "run"]


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> None:
    """Registers the command."""
    parser = commands.add_parser(
        "doctor",
        help="says whether the plugin works in this environment, and how it is set",
        description="Enables the plugin in a process of its own, imports mcp there, and tells what came of it. "
        "Exit status 1 if the plugin is blind: enabled, mcp there, and yet something is not seen.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Prints the diagnosis. 1 if the plugin is blind, 0 otherwise."""
    found = diagnose(os.environ)
    print(json.dumps(asdict(found), indent=2) if options.json else render(found))
    return int(found.blind)


def render(found: Diagnosis) -> str:
    """The diagnosis as a page for a terminal."""
    mcp = found.mcp_version or "not installed"
    lines = [
        f"otel-mcp-resume {found.version}, mcp {mcp}, Python {found.python} ({found.executable})",
        f"{_conclusion(found)}",
        "",
        "Activation",
        *_table((_force(each), each.way, each.detail) for each in found.activations),
        "",
        "Hooks" if found.enabled else "Hooks, if it were enabled",
        *(_table(("in place" if there else "MISSING", hook) for hook, there in found.hooks.items()) or ["  none"]),
        "",
        "Settings",
        *_table((each.name, each.value, each.source) for each in found.settings),
        "",
        "Metrics go to" if found.enabled else "Metrics, if it were enabled, go to",
        *(f"  {line}" for line in found.metrics),
    ]
    if found.problems:
        lines += ["", "Problems", *(f"  {problem}" for problem in found.problems)]
    return "\n".join(lines)


def _conclusion(found: Diagnosis) -> str:
    if found.blind:
        return "BLIND: enabled, but it does not see everything"
    if not found.enabled:
        return "Not enabled"
    return "Enabled, all hooks in place" if found.mcp_version else "Enabled, but there is no mcp to watch"


def _force(activation: Activation) -> str:
    return {True: "in force", False: "-", None: "?"}[activation.in_force]


def _table(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Rows with aligned columns, indented; the last column is as long as it likes."""
    cells = list(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]

"""The command line: `otel-mcp-resume demo | doctor | assets`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from importlib import import_module

from otel_mcp_resume.versions import installed_version

__all__ = ["main"]

_COMMANDS = (
    ("doctor", "otel_mcp_resume.cli.doctor", "says whether the plugin works in this environment, and how it is set"),
    ("demo", "otel_mcp_resume.cli.demo", "plays resumptions that lose something, and shows the verdicts"),
    ("assets", "otel_mcp_resume.cli.assets", "writes the alerts and dashboards of this release to a directory"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. Its exit status: 0 if all is well, 1 if the command found a fault, 2 for a wrong call."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = ArgumentParser(prog="otel-mcp-resume", description="Verdicts on resumed MCP streams.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {installed_version()}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, module, about in _COMMANDS:
        if name in arguments:
            import_module(module).add_parser(commands)
        else:  # known to the help; its module, and with it `mcp`, stays out of the other commands
            commands.add_parser(name, help=about)
    options: Namespace = parser.parse_args(arguments)
    run: Callable[[Namespace], int] = options.run
    try:
        code = run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough: `otel-mcp-resume doctor | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains at its end
        return 0
    return code

"""`otel-mcp-resume assets DIR`: the alerts and dashboards that belong to this release, as files to be deployed."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction  # pyright: ignore[reportPrivateUsage] - argparse has no other name for it

__all__ = ["KINDS", "add_parser", "run", "shipped"]

KINDS = ("alerts", "dashboards")
"""Each is a directory of files that refer to one another."""

_PACKAGE = Path(__file__).resolve().parent.parent
_SUFFIXES = {".json", ".md", ".yml"}
_SCRIPTS = {"alerts/generate.py"}
"""It writes the alerts with your own addresses in them, and needs nothing of this package."""


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> None:
    """Registers the command."""
    parser = commands.add_parser(
        "assets",
        help="writes alerts and dashboards to a directory",
        description="Writes the alerts (Prometheus, Kubernetes, Grafana, Alertmanager, runbooks) and the dashboards "
        "(Grafana, with provisioning and a compose file to try them) of this release to a directory. "
        "Exit status 1 if something could not be written, or would be overwritten.",
    )
    parser.add_argument("directory", metavar="DIR", type=Path, help="gets a directory for each kind; made if needed")
    parser.add_argument("--only", choices=KINDS, action="append", help="this kind; can be repeated")
    parser.add_argument("--force", action="store_true", help="overwrite files that are there and differ")
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Writes the files. Those that are there and differ are left alone, and then nothing is written at all."""
    wanted = {name: path.read_bytes() for name, path in shipped(*(options.only or KINDS))}
    target: Path = options.directory
    try:
        different = [name for name, content in wanted.items() if _differs(target / name, content)]
        if different and not options.force:
            print(f"These differ in {target}; --force overwrites them:", *different, sep="\n  ", file=sys.stderr)
            return 1
        for name, content in wanted.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(content)
    except OSError as error:
        print(f"otel-mcp-resume assets: {error}", file=sys.stderr)
        return 1
    print(_summary(target, list(wanted)))
    return 0


def shipped(*kinds: str) -> Iterator[tuple[str, Path]]:
    """Every file of these kinds: its name below the target, and where it is now."""
    installed = _PACKAGE / "assets"
    home = installed if installed.is_dir() else _PACKAGE.parent  # a source tree has them beside the package
    for kind in kinds:
        for path in sorted((home / kind).rglob("*")):
            name = path.relative_to(home).as_posix()
            if name in _SCRIPTS or (path.suffix in _SUFFIXES and "/tests/" not in name):
                yield name, path


def _differs(path: Path, content: bytes) -> bool:
    return path.exists() and path.read_bytes() != content


def _summary(target: Path, names: list[str]) -> str:
    counts = {kind: sum(name.startswith(f"{kind}/") for name in names) for kind in KINDS}
    return "\n".join(
        f"{target / kind}: {count} files, see {target / kind / 'README.md'}" for kind, count in counts.items() if count
    )

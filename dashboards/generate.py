"""Writes the three dashboards: `python -m dashboards.generate`, from the root of the repository.

Needs Python 3.11 and `grafana-foundation-sdk==0.0.21`. The JSON beside this is committed: `--check` writes nothing, and
exits with 1 if a file is out of date. With `--out` they go to another directory; `--runbooks` changes where they lead:

    python -m dashboards.generate --out DIR --runbooks https://wiki.example.com/mcp
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards import continuity, migration, server
from dashboards.links import RUNBOOKS
from dashboards.normalise import text

__all__ = ["main", "written"]

HERE = Path(__file__).resolve().parent


def written(runbooks: str = RUNBOOKS) -> dict[str, str]:
    """Every dashboard, by the name of its file."""
    boards = (continuity.board(), migration.board(), server.board())
    plain = [json.loads(JSONEncoder(sort_keys=True).encode(board.build())) for board in boards]
    return {f"{board['uid']}.json": text(board).replace(RUNBOOKS, runbooks.rstrip("/")) for board in plain}


def main(arguments: list[str]) -> int:
    """The command line; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 if a file is out of date")
    parser.add_argument("--out", type=Path, default=HERE, help="write to this directory")
    parser.add_argument("--runbooks", default=RUNBOOKS, help="where the runbooks are served")
    options = parser.parse_args(arguments)
    stale = 0
    for name, content in written(options.runbooks).items():
        path = options.out / name
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8", newline="\n")
        elif not path.exists() or path.read_text(encoding="utf-8") != content:
            stale = 1
            print(f"{path} is out of date: run python -m dashboards.generate", file=sys.stderr)  # noqa: T201 - a script
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

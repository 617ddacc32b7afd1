"""The types of Grafana's own schema, which catch a misspelt key or a value that does not exist.

Grafana's enumerations are nominal, so plain JSON would fail: `Plain` turns each into the strings that it stands for.
The compiler reports the first unknown key of a literal only, so every panel is a constant of its own.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

pytestmark = [pytest.mark.npm, pytest.mark.timeout(240)]

HEAD = """
import type { Dashboard, Panel, RowPanel } from '@grafana/schema';
type Plain<T> = 0 extends 1 & T ? T
  : T extends string ? `${T}`
  : T extends (infer U)[] ? Plain<U>[]
  : T extends object ? { [K in keyof T]: Plain<T[K]> }
  : T;
"""
OPTIONS = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--moduleResolution", "nodenext"]
TYPES = {"row": "RowPanel"}
OF_PROMETHEUS = {"expr", "step", "titleFormat"}
"""Keys of an annotation that its data source reads. The type of the schema does not know that sources have any."""


def program(boards: dict[str, Any]) -> str:
    lines = [HEAD]
    for number, board in enumerate(boards.values()):
        rest = {key: value for key, value in board.items() if key not in {"panels", "id"}}
        marks = [{k: v for k, v in each.items() if k not in OF_PROMETHEUS} for each in rest["annotations"]["list"]]
        rest["annotations"] = {"list": marks}
        lines.append(f"export const board{number}: Plain<Omit<Dashboard, 'panels'>> = {json.dumps(rest)};")
        for panel in board["panels"]:
            name = f"board{number}panel{panel['id']}"
            lines.append(f"export const {name}: Plain<{TYPES.get(panel['type'], 'Panel')}> = {json.dumps(panel)};")
    return "\n".join(lines)


def test_the_types_of_grafanas_schema_take_every_dashboard(npm: Any, all_boards: Any) -> None:
    packages = npm("@grafana/schema@13.2.3", "typescript@5.9.3")

    def complaints(boards: dict[str, Any]) -> list[str]:
        (packages.home / "boards.ts").write_text(program(boards))
        said = packages.run("node_modules/.bin/tsc", *OPTIONS, "boards.ts", check=False)
        return [line for line in said.splitlines() if "error TS" in line]

    assert complaints(all_boards) == []

    wrong = deepcopy(all_boards)
    panels = wrong["mcp-resume-server"]["panels"]
    panels[1]["gridpos"] = panels[1].pop("gridPos")
    panels[2]["fieldConfig"]["defaults"]["thresholds"]["mode"] = "absolut"
    panels[3]["fieldConfig"]["defaults"]["unt"] = "s"
    wrong["mcp-resume-migration"]["templating"]["list"][2]["refresh"] = "always"
    assert len(complaints(wrong)) >= 4

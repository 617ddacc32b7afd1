"""The dashboards as the tests see them: the JSON that users get, not the code that writes it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DASHBOARDS = ROOT / "dashboards"
TOOLS = {"prometheus": "prometheus", "promtool": "prometheus", "amtool": "prometheus-alertmanager"}
"""Each with its Debian package."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """One panel that is no row."""

    board: str
    raw: Json = field(hash=False, repr=False)

    def __str__(self) -> str:
        return f"{self.board}-{self.raw['id']}-{self.raw['title']}"

    @property
    def targets(self) -> list[Json]:
        return list(self.raw["targets"])


@dataclass(frozen=True)
class Query:
    """One query, of a panel or of an annotation."""

    place: str
    expr: str
    instant: bool
    kind: str
    """The type of its panel."""

    def __str__(self) -> str:
        return self.place


def boards() -> dict[str, Json]:
    return {path.stem: json.loads(path.read_text()) for path in sorted(DASHBOARDS.glob("mcp-resume-*.json"))}


def panels() -> Iterator[Panel]:
    for name, board in boards().items():
        yield from (Panel(name, panel) for panel in board["panels"] if panel["type"] != "row")


def queries() -> Iterator[Query]:
    for panel in panels():
        for target in panel.targets:
            yield Query(f"{panel}-{target['refId']}", target["expr"], target["instant"], panel.raw["type"])
    for name, board in boards().items():
        for annotation in board["annotations"]["list"]:
            if "expr" in annotation:
                yield Query(f"{name}-{annotation['name']}", annotation["expr"], instant=False, kind="annotation")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "prom: needs Prometheus, promtool or amtool (Debian: prometheus*)")
    config.addinivalue_line("markers", "npm: fetches packages of Grafana from npm; skipped where there is none")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """None of this depends on the version of mcp, so one row of the matrix for each line is enough."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker("full")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`board`, `panel` and `query` are one each."""
    if "board" in metafunc.fixturenames:
        metafunc.parametrize("board", list(boards().values()), ids=list(boards()))
    if "panel" in metafunc.fixturenames:
        metafunc.parametrize("panel", list(panels()), ids=str)
    if "query" in metafunc.fixturenames:
        metafunc.parametrize("query", list(queries()), ids=str)


@pytest.fixture(scope="session")
def all_queries() -> list[Query]:
    return list(queries())


@pytest.fixture(scope="session")
def all_boards() -> dict[str, Json]:
    return boards()


@pytest.fixture(scope="session")
def directory() -> Path:
    return DASHBOARDS


@pytest.fixture(scope="session")
def tool() -> Callable[[str], str]:
    """The path of a tool. A machine without it fails the test: silence would look like success."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            pytest.fail(
                f'{name} is missing: apt-get install {TOOLS[name]}, or leave these tests out with -m "not prom"'
            )
        return path

    return find


@dataclass(frozen=True)
class Packages:
    """A directory with packages from npm."""

    home: Path

    def node(self, script: str, text: str = "") -> str:
        """What a script writes that sees the packages."""
        return self.run("node", "-e", script, text=text)

    def run(self, *command: str, text: str = "", check: bool = True) -> str:
        run = subprocess.run(
            command, cwd=self.home, input=text, capture_output=True, text=True, timeout=100, check=False
        )
        assert not check or run.returncode == 0, run.stdout + run.stderr
        return run.stdout


@pytest.fixture
def npm(tmp_path: Path) -> Callable[..., Packages]:
    """Installs packages from npm. Where that is impossible, the test is skipped: users need none of it."""

    def install(*packages: str) -> Packages:
        found = shutil.which("npm")
        if found is None or shutil.which("node") is None:
            pytest.skip("needs node and npm, which bring Grafana's own packages")
        command = [found, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--legacy-peer-deps"]
        run = subprocess.run(
            [*command, "--prefix", str(tmp_path), *packages], capture_output=True, text=True, timeout=100, check=False
        )
        if run.returncode:
            pytest.skip(f"npm can't bring {packages[0]}: {run.stderr.strip()[-200:]}")
        return Packages(tmp_path)

    return install

"""Fresh virtual environments, and scripts that run in processes of their own: activation changes a process for good."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent.parent
SOURCE = HERE if (HERE / "otel_mcp_resume").is_dir() else HERE / "source"
"""The source tree. Where the wheel is tested, it lies aside, so that nothing imports it by accident."""

Uv = Callable[..., None]


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the plugin in it."""

    python: Path

    @property
    def site_packages(self) -> Path:
        return next(self.python.parent.parent.glob("lib/python*/site-packages"))

    def run(self, script: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs `script` there, with nothing of ours in its environment but `variables`."""
        return self.call(self.python, *options, "-c", textwrap.dedent(script), **variables)

    def call(self, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs any command there. A free port is served unless `variables` say otherwise."""
        environ = {**_clean(os.environ), "OTEL_EXPORTER_PROMETHEUS_PORT": "none", **variables}
        environ["PATH"] = f"{self.python.parent}{os.pathsep}{environ['PATH']}"
        return subprocess.run(
            list(map(str, command)), env=environ, cwd=self.python.parent, capture_output=True, text=True, check=False
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Rules and dashboards are files: which Python and which mcp makes no difference to them."""
    for item in items:
        if HERE / "tests" / "alerts" in item.path.parents or HERE / "tests" / "dashboards" in item.path.parents:
            item.add_marker(pytest.mark.once)


def pytest_collection_finish(session: pytest.Session) -> None:
    """A group of tests that share a costly fixture must not be torn apart, which one release of pytest did silently."""
    if getattr(session.config.option, "loadgroup", False):
        torn = [
            item.nodeid for item in session.items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid
        ]
        assert not torn, f"this pytest does not work with this pytest-xdist: the group is ignored of {torn[:3]}"


def _clean(environ: Mapping[str, str]) -> dict[str, str]:
    ours = ("OTEL_", "PYTHON", "PROMETHEUS_", "COV_")
    return {name: value for name, value in environ.items() if not name.startswith(ours)}


@pytest.fixture(scope="session")
def uv() -> Uv:
    """Calls uv."""
    found = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert found is not None, "uv is in the dependency group `test`"

    def call(*arguments: str | Path) -> None:
        environ = {**_clean(os.environ), "UV_PYTHON_DOWNLOADS": "never"}
        run = subprocess.run([found, *map(str, arguments)], env=environ, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr

    return call


@pytest.fixture(scope="session")
def wheel(uv: Uv, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel under test: the one that the matrix has built, or a new one."""
    if given := os.environ.get("TESTED_WHEEL"):
        return Path(given)
    target = tmp_path_factory.mktemp("dist")
    uv("build", "--quiet", "--wheel", "--out-dir", target, SOURCE)
    return next(target.glob("*.whl"))


def _install(uv: Uv, home: Path, *what: str | Path) -> Environment:
    """An environment with mcp. Everything has the version that it has here, in this row of the matrix."""
    uv("venv", "--quiet", "--python", sys.executable, home)
    python = home / "bin" / "python"
    constraints = home / "constraints.txt"
    here = {each.name: each.version for each in distributions() if each.name != "otel-mcp-resume"}
    constraints.write_text("".join(f"{name}=={number}\n" for name, number in here.items()))
    uv("pip", "install", "--quiet", "--python", python, "--constraint", constraints, "mcp", *what)
    return Environment(python)


@pytest.fixture(scope="session")
def installed(uv: Uv, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """A fresh virtual environment with the wheel, and the same mcp as here."""
    home = tmp_path_factory.mktemp("wheel") / "env"
    yield _install(uv, home, wheel)
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def editable(uv: Uv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """A fresh virtual environment with an editable install of the source tree."""
    home = tmp_path_factory.mktemp("editable") / "env"
    yield _install(uv, home, "--editable", SOURCE)
    shutil.rmtree(home, ignore_errors=True)


# A shell starts what runs in the background with SIGINT ignored, and every process below inherits that.
with contextlib.suppress(ValueError):  # not in the main thread
    signal.signal(signal.SIGINT, signal.default_int_handler)

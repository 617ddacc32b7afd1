"""What a Python start costs with the plugin installed: turned off, turned on, and with `mcp`."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from tests.bench.arms import ARMS

__all__ = ["Start", "run", "table"]

ROUNDS, QUICK = 25, 4
ON = ARMS["plugin"].environ


_WEIGH = """
import time
print(time.process_time(), next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmRSS')))
"""
"""What a process says of itself at its end. Its parent would see what it was itself before it became Python."""


@dataclass(frozen=True)
class Start:
    """One way to start Python. Milliseconds of CPU time and of waiting, MiB in the end."""

    title: str
    cpu: float
    wall: float
    memory: float
    than: str
    """What it is compared with."""
    added_cpu: float
    added_memory: float


@dataclass(frozen=True)
class _Way:
    title: str
    python: str
    script: str
    environ: dict[str, str]
    than: str = ""


def run(*, quick: bool = False) -> list[Start]:
    """All ways in turn, several times. The first round warms the caches and is not counted."""
    order = random.Random(0)
    with _environments() as (empty, with_plugin):
        ways = [
            _Way("python", empty, "pass", {}),
            _Way("python, plugin installed and off", with_plugin, "pass", {}, "python"),
            _Way("python, plugin on, no mcp", with_plugin, "pass", ON, "python"),
            _Way("import mcp, plugin off", sys.executable, "import mcp", {}),
            _Way("import mcp, plugin on", sys.executable, "import mcp", ON, "import mcp, plugin off"),
        ]
        samples: dict[str, list[tuple[float, float, float]]] = {way.title: [] for way in ways}
        for number in range((QUICK if quick else ROUNDS) + 1):
            for way in order.sample(ways, len(ways)):
                sample = _start(way)
                if number:
                    samples[way.title].append(sample)
    return [_told(way, samples) for way in ways]


def _told(way: _Way, samples: dict[str, list[tuple[float, float, float]]]) -> Start:
    own, other = samples[way.title], samples[way.than or way.title]
    added = [[a[part] - b[part] for a, b in zip(own, other, strict=True)] for part in (0, 2)]
    cpu, wall, memory = map(median, zip(*own, strict=True))
    return Start(way.title, cpu, wall, memory, way.than, *map(median, added))


def _start(way: _Way) -> tuple[float, float, float]:
    began = time.perf_counter()
    command = [way.python, "-W", "ignore", "-c", f"{way.script}{_WEIGH}"]
    environ = _clean() | way.environ
    run = subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    cpu, resident = run.stdout.split()
    return 1e3 * float(cpu), 1e3 * (time.perf_counter() - began), int(resident) / 1024


def _clean() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "PYTHON", "PROMETHEUS_"))}


@contextlib.contextmanager
def _environments() -> Iterator[tuple[str, str]]:
    """Two interpreters with nothing installed, but for the startup file and the package in one of them."""
    package = find_spec("otel_mcp_resume")
    assert package is not None
    assert package.submodule_search_locations is not None
    with tempfile.TemporaryDirectory() as folder:
        found: list[str] = []
        for name in ("empty", "plugin"):
            home = Path(folder, name)
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
            found.append(str(home / "bin" / "python"))
        site = next(Path(folder, "plugin").glob("lib/python*/site-packages"))
        shutil.copy(Path(sysconfig.get_path("purelib"), "otel_mcp_resume.pth"), site)
        site.joinpath("otel_mcp_resume").symlink_to(package.submodule_search_locations[0])
        yield found[0], found[1]


def table(found: list[Start]) -> str:
    """Markdown."""
    lines = ["| start | CPU time | memory | added |", "|---|---|---|---|"]
    for each in found:
        added = f"{each.added_cpu:+.1f} ms, {each.added_memory:+.1f} MiB" if each.than else ""
        lines.append(f"| {each.title} | {each.cpu:.1f} ms | {each.memory:.1f} MiB | {added} |")
    return "\n".join(lines)

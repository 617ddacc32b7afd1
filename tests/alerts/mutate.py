"""Changes every threshold, window, delay, matcher and operator of the rules, one at a time, and expects a test to fail.

`python -m tests.alerts.mutate [NAME ...]` mutates the rules of these names, or all of them. It exits with 1 if a
change goes unnoticed, and lists each that does. Needs `promtool` and promql-parser.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import yaml

from tests.alerts.spoil import Rule, changes

ALERTS = Path(__file__).resolve().parents[2] / "alerts"
SOURCES = ("mcp-resume.rules.yml", "mcp-resume.alerts.yml", "mcp-resume.slo.yml")


def _is_known(alerts: Path, name: str) -> bool:
    texts = [(alerts / source).read_text() for source in SOURCES]
    return any(f"record: {name}\n" in text or f"alert: {name}\n" in text for text in texts)


_ENVIRON = {**os.environ, "GOGC": "off"}
"""It lives for a second: what it collects is not worth its collection, a fifth of its time."""


@dataclass(frozen=True)
class Job:
    """One change of one rule, and the whole file after it."""

    source: str
    name: str
    what: str
    content: dict[str, Any]
    place: int = 0
    """Of the rule in its group, which tells rules of one name apart."""


def tests_of(alerts: Path, name: str) -> list[Path]:
    """The files with the tests of an alert; for a recording rule, the one with the values that it records."""
    if ":" in name:
        return [alerts / "tests" / "recording.yml"]
    return [*sorted(alerts.glob(f"tests/{name}.yml")), *sorted(alerts.glob(f"tests/{name}.*.yml"))]


class Stage:
    """Every test of one rule in a file of its own: one that fails is enough, and some take as long as all others."""

    def __init__(self, alerts: Path, name: str, home: Path) -> None:
        self._home = home
        self._others = {source: _written(_only(_load(alerts / source), name)) for source in SOURCES}
        (home / "tests").mkdir(parents=True)
        documents = [_load(path) for path in tests_of(alerts, name)]
        parts = [{**document, "tests": [test]} for document in documents for test in document["tests"]]
        texts = sorted(map(_written, parts), key=lambda text: name not in text)  # those that speak of it come first
        self._tests = [f"tests/{number}.yml" for number in range(len(texts))]
        for test, text in zip(self._tests, texts, strict=True):
            (home / test).write_text(text)
        self._seconds = dict.fromkeys(self._tests, 0.0)
        self._played = Counter[tuple[int, str]]()
        self._failed = Counter[tuple[int, str]]()

    def unnoticed(self, job: Job) -> str | None:
        """Runs the tests of the rule against the changed file; a line for the report if none of them fails."""
        with tempfile.TemporaryDirectory(dir=self._home) as directory:
            room = Path(directory)
            for source, text in self._others.items():
                (room / source).write_text(_written(job.content) if source == job.source else text)
            (room / "tests").symlink_to(self._home / "tests")
            for test in sorted(self._tests, key=partial(self._price, job.place)):
                command, began = ["promtool", "test", "rules", test], time.monotonic()
                run = subprocess.run(command, cwd=room, env=_ENVIRON, capture_output=True, check=False)
                self._seconds[test] = time.monotonic() - began
                self._played[job.place, test] += 1
                if run.returncode != 0:
                    self._failed[job.place, test] += 1
                    return None
        return f"{job.source}: {job.name}: {job.what}"

    def _price(self, place: int, test: str) -> float:
        """How long a test would take for each change of this rule that it notices, going by those before."""
        return self._seconds[test] * (self._played[place, test] + 2) / (self._failed[place, test] + 1)


def _written(content: dict[str, Any]) -> str:
    """JSON is YAML, and written in a hundredth of the time."""
    return json.dumps(content, ensure_ascii=False)


def jobs(alerts: Path, names: list[str]) -> Iterator[Job]:
    """Every change of every rule called for, or of all rules."""
    for source in SOURCES:
        content = _load(alerts / source)
        for group, rules in enumerate(content["groups"]):
            for index, rule in enumerate(rules["rules"]):
                name = rule.get("alert") or rule["record"]
                if names and name not in names:
                    continue
                for what, changed in changes(rule):
                    file = _only(copy.deepcopy(content), name)
                    file["groups"][group]["rules"] = [
                        changed if other is rule else copy.deepcopy(other)
                        for other in rules["rules"]
                        if other is rule or _belongs(other, name)
                    ]
                    severity = rule.get("labels", {}).get("severity", "recorded")
                    yield Job(source, name, f"{severity} {index}: {what}", file, index)


def _load(path: Path) -> dict[str, Any]:
    return copy.deepcopy(_parsed(path.read_text()))


@cache
def _parsed(text: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def _belongs(rule: Rule, name: str) -> bool:
    return "record" in rule or rule["alert"] == name


def _only(content: dict[str, Any], name: str) -> dict[str, Any]:
    """Other alerts are no part of the test, and evaluating them is most of its time."""
    for group in content["groups"]:
        group["rules"] = [rule for rule in group["rules"] if _belongs(rule, name)]
    return content


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="alerts or recording rules; all of them if none is named")
    parser.add_argument("--alerts", type=Path, default=ALERTS, help="the directory with the rules and their tests")
    parser.add_argument("--workers", type=int, default=2, help="how many promtool processes run at a time")
    given = parser.parse_args(arguments)
    if shutil.which("promtool") is None:
        print("promtool is missing: apt-get install prometheus", file=sys.stderr)
        return 2
    work = list(jobs(given.alerts, given.names))
    if not work and given.names and all(_is_known(given.alerts, name) for name in given.names):
        print("0 changes: a quotient of other rules has nothing to spoil")
        return 0
    if not work:
        print("no rule of that name", file=sys.stderr)
        return 2
    survivors: list[str] = []
    with tempfile.TemporaryDirectory() as home, ThreadPoolExecutor(given.workers) as pool:
        for name, changed in groupby(sorted(work, key=attrgetter("name")), key=attrgetter("name")):
            stage, some = Stage(given.alerts, name, Path(home) / name), list(changed)
            unchanged = replace(some[0], content=_only(_load(given.alerts / some[0].source), name), place=-1)
            if stage.unnoticed(unchanged) is None:
                print(f"the tests of {name} fail without any change", file=sys.stderr)
                return 2
            survivors += filter(None, pool.map(stage.unnoticed, some))
    for line in survivors:
        print(line)
    print(f"{len(work)} changes, {len(work) - len(survivors)} noticed, {len(survivors)} not")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The queries of the README that people paste: their syntax, and that they ask for what is really there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.parse
from pathlib import Path

import pytest

from otel_mcp_resume.report import fields
from otel_mcp_resume.rules.terms import Outcome
from tests.conftest import SOURCE

README = (SOURCE / "README.md").read_text()
GRAMMAR = ("@grafana/lezer-traceql@1.0.0", "@lezer/lr@1", "@lezer/common@1")
NAMES = {fields.SPAN_RESUME, fields.SPAN_SESSION, fields.SPAN_STREAM}


def block(language: str, contains: str) -> list[str]:
    """The lines of a code block that are no comments."""
    blocks = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    (text,) = [text for text in blocks if contains in text]
    return [line for line in text.splitlines() if line and not line.startswith("#")]


TRACEQL = block("traceql", "mcp.resume")
JAEGER = block("text", "/search?")


@pytest.fixture(scope="session")
def grammar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Grafana's own grammar of TraceQL, from npm."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("needs node and npm, which bring Grafana's grammar")
    home = tmp_path_factory.mktemp("grammar")
    command = [npm, "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(home), *GRAMMAR]
    run = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    if run.returncode:
        pytest.skip(f"npm can't bring the grammar: {run.stderr.strip()[-200:]}")
    return home


def rejected(grammar: Path, queries: list[str]) -> list[str]:
    command = ["node", str(Path(__file__).with_name("check_traceql.mjs")), str(grammar)]
    run = subprocess.run(command, input="\n".join(queries), capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_the_grammar_takes_every_traceql_query(grammar: Path) -> None:
    assert len(TRACEQL) >= 5
    assert rejected(grammar, TRACEQL) == []


def test_the_grammar_would_tell(grammar: Path) -> None:
    wrong = ['{ name = "mcp.resume" && }', '{ span.mcp.session.id == "x" }', "{ name = mcp.resume"]
    assert rejected(grammar, [*TRACEQL, *wrong]) == wrong


def test_traceql_asks_for_names_that_we_send() -> None:
    text = "\n".join(TRACEQL)
    asked = set(re.findall(r"(?:span|event)\.([\w.]+)", text))
    assert asked
    assert asked <= set(fields.ATTRIBUTES)
    assert set(re.findall(r'name = "(mcp[\w.]+)"', text)) <= NAMES
    assert set(re.findall(r'outcome = "(\w+)"', text)) <= set(map(str, Outcome))


@pytest.mark.parametrize("line", JAEGER)
def test_jaeger_asks_for_names_that_we_send(line: str) -> None:
    asked = urllib.parse.parse_qs(urllib.parse.urlsplit(line).query, strict_parsing=True)
    assert set(asked) <= {"service", "operation", "tags"}
    assert set(asked.get("operation", [])) <= NAMES
    tags = json.loads(asked["tags"][0])
    assert set(tags) <= {*fields.ATTRIBUTES, "error"}
    assert all(isinstance(value, str) for value in tags.values())

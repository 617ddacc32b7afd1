"""A few thousand hostile inputs; `python -m tests.fuzz` sends as many as you like."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider

from otel_mcp_resume.plugin import Plugin, Providers
from otel_mcp_resume.settings import Settings
from tests.fuzz.__main__ import Findings, attack
from tests.fuzz.client import HostileServer
from tests.fuzz.corpus import CONTENT, Corpus


@pytest.mark.once
@pytest.mark.timeout(300)
@pytest.mark.parametrize("ids", ["raw", "none"])
def test_nothing_comes_of_it(ids: str) -> None:
    findings = attack(1200, 300, seed=7, ids=ids)
    assert findings.wrong == []
    assert findings.spans > 100


class Told(Corpus):
    """A corpus that says what it is told to."""

    text = ""

    def stream(self) -> str:
        return self.text


LINES = st.sampled_from(["id: 5", "id:", "id", "data: {", "data", ":", "event: endpoint", "retry: x", "\0", "\ufeff"])


@pytest.mark.once
@pytest.mark.timeout(300)
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.text() | LINES), st.sampled_from(["\n", "\r", "\r\n", "\n\n"]), st.integers(0, 1000))
def test_no_text_is_too_much_for_a_client(lines: list[str], end: str, seed: int) -> None:
    plugin = Plugin(
        Settings(metrics=frozenset(), max_streams=50, max_events=100), Providers(TracerProvider(shutdown_on_exit=False))
    )
    corpus = Told(Random(seed))
    corpus.text = end.join(lines) + end
    try:
        asyncio.run(HostileServer(plugin, corpus).conversation())
        findings = Findings()
        findings.numbers(plugin)
    finally:
        plugin.close()
    assert findings.wrong == []


def test_what_would_be_wrong_is_found() -> None:
    findings = Findings()
    findings._look("span", [CONTENT])
    findings._look("span", ["x" * 5000])
    assert len(findings.wrong) == 2

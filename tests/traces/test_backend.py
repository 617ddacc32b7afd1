"""A real trace store takes a run of the demo, and whoever searches in it finds the gap and what was cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.traces.plays import play, to
from tests.traces.store import Store, linked, store

pytestmark = [
    pytest.mark.backend,
    pytest.mark.once,  # the spans are those of test_demo_spans.py, which every full row plays
    pytest.mark.full,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("backend"),
]


@pytest.fixture(scope="module")
def found(uv: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with store(tmp_path_factory.mktemp("store"), uv) as running:
        result = play("deploy", {**to(running.url), "OTEL_EXPORTER_OTLP_HEADERS": "x-mlflow-experiment-id=0"})
        assert result.as_wanted, result.verdict
        yield running


def gaps(spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        span
        for span in spans
        if span["name"] == "mcp.resume"
        and span["attributes"]["mcp.resume.outcome"] == "gap"
        and span["attributes"]["mcp.resume.stream"] == "request"
    ]


def the_gap(found: Store, traces: list[str]) -> dict[str, Any]:
    (gap,) = [gap for trace in set(traces) for gap in gaps(found.spans(trace))]
    return gap


def test_a_gap_is_found_by_name_by_session_and_by_event(found: Store) -> None:
    gap = the_gap(found, found.search("span.name = 'mcp.resume'"))
    assert gap["status"] == {"code": "STATUS_CODE_ERROR", "message": "gap: session_changed"}
    shown = gap["attributes"]
    for name in ("mcp.session.id", "mcp.resume.previous_session_id", "mcp.resume.token"):
        traces = found.search(f"span.attributes.{name} LIKE '%{shown[name]}%'")
        assert the_gap(found, traces)["span_id"] == gap["span_id"], name


def test_its_link_leads_to_the_stream_that_was_cut(found: Store) -> None:
    (trace,) = found.search("span.attributes.mcp.resume.outcome LIKE '%gap%'")
    spans = found.spans(trace)
    (gap,) = gaps(spans)
    cut, replacement = (linked(link, spans) for link in gap["links"])
    assert (cut["name"], replacement["name"]) == ("mcp.stream", "mcp.stream")
    assert cut["attributes"]["mcp.session.id"] == gap["attributes"]["mcp.resume.previous_session_id"]
    assert cut["attributes"]["mcp.resume.last_event_id"] == gap["attributes"]["mcp.resume.token"]
    assert replacement["attributes"]["mcp.session.id"] == gap["attributes"]["mcp.session.id"]

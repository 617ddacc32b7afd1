"""A fault at any point of our own bookkeeping, one at a time, while a real client is cut and resumes.

The application's results stay the same, and the fault is counted.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from otel_mcp_resume.plugin import Plugin
from tests.sdk.client_world import RESUMES, Peer, attempts, connected, faults, plugged, resumes, run, served, text_of, until
from tests.sdk.planting import PlantedError, Point, planted, points
from tests.wire.driven.steps import Json

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not RESUMES, reason="before 1.23 the SDK re-opens no stream of a request"),
]

ON_THE_PATH = (
    "sdk.client",
    "sdk.http_tap",
    "watch.attempt",
    "watch.client",
    "watch.client_stream",
    "watch.connection",
    "watch.cursors",
    "watch.deadlines",
    "watch.exchange",
    "watch.facts",
    "watch.jsonrpc",
    "watch.repeats",
    "watch.seen",
    "watch.sse",
    "watch.transport",
    "rules.event_id",
    "rules.verdict",
    "report.attributes",
    "report.log",
    "report.metrics",
    "report.reporter",
    "report.spans",
    "report.tracing",
)
COUNTS_FAULTS = "report.metrics.Metrics.internal_error"
POINTS = [point for point in points(*ON_THE_PATH) if point.name != COUNTS_FAULTS]

RULES: list[Json] = [
    {"when": {"method": "GET", "token": None}, "respond": {"sse": [{"id": "g5", "retry": 10, "note": "a"}]}},
    {"when": {"method": "GET", "token": "g5"}, "respond": {"sse": [{"comment": "ping"}, {"note": "b"}], "end": "hold"}},
    {"when": {"rpc": "tools/list"}, "respond": {"sse": [{"id": "l1", "answer": True}]}},
    {"when": {"rpc": "tools/call", "nth": "2+"}, "respond": {"sse": [{"id": "c1", "result": "other"}]}},
    *resumes({"sse": [{"id": 1, "note": "c"}, {"id": 2, "note": "d"}, {"id": 3, "result": "done"}]}),
]


async def application(peer: Peer, plugin: Plugin | None) -> list[Any]:
    """A call that is cut and resumed, a notification stream that is, a list of tools, and another call."""
    noted: list[str] = []

    async def note(params: Any) -> None:
        noted.append(params.data)

    async with connected(peer.url, logging_callback=note) as api:
        first = text_of(await api.call_tool("t", {}))
        tools = [tool.name for tool in (await api.list_tools()).tools]
        await until(lambda: len(noted) == 4)
        if plugin is not None:
            with anyio.move_on_after(0.2):  # time for the verdict of the proof timeout, if it still comes
                await until(lambda: "standalone unproven no_event_ids" in attempts(plugin))
        second = text_of(await api.call_tool("t", {"n": 2}))
    return [first, sorted(noted), tools, second]


def played(plugin: Plugin | None) -> list[Any]:
    with served(*RULES) as peer:
        result: list[Any] = run("asyncio", lambda: application(peer, plugin))
    return result


@pytest.fixture(scope="module")
def undisturbed() -> list[Any]:
    """What the application gets without the plugin."""
    return played(None)


@pytest.fixture
def plugin() -> Iterator[Plugin]:
    with plugged(proof_timeout=0.05) as kit:
        yield kit


def test_without_a_fault(plugin: Plugin, undisturbed: list[Any]) -> None:
    assert played(plugin) == undisturbed == ["done", ["a", "b", "c", "d"], ["t"], "other"]
    assert attempts(plugin) == {"request proven replayed_event": 1, "standalone unproven no_event_ids": 1}
    assert faults(plugin) == {}


STRUCK: set[str] = set()


@pytest.mark.xdist_group("faults")
@pytest.mark.parametrize("point", POINTS, ids=str)
def test_a_fault_is_counted_and_the_application_never_learns(
    plugin: Plugin, undisturbed: list[Any], point: Point
) -> None:
    with planted(point) as fault:
        assert played(plugin) == undisturbed
    if fault.struck:
        STRUCK.add(point.name)
        assert sum(faults(plugin).values()) >= 1
    else:
        assert faults(plugin) == {}, "this application does not come there"


@pytest.mark.xdist_group("faults")
def test_most_of_these_points_were_on_the_way() -> None:
    assert len(STRUCK) >= 100, sorted(STRUCK)

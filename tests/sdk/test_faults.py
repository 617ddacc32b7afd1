"""A fault at any point of our own bookkeeping, one at a time, while a real client is cut and resumes.

The application's results stay the same, and the fault is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_mcp_resume.plugin import Plugin
from tests.sdk.client_world import (
    RESUMES,
    Peer,
    attempts,
    connected,
    counts,
    faults,
    plugged,
    resumes,
    run,
    served,
    text_of,
    until,
)
from tests.sdk.planting import Point, called, planted, points
from tests.wire.driven.steps import Json

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not RESUMES, reason="before 1.23 the SDK re-opens no stream of a request"),
]

ON_THE_PATH = (
    "rules.event_id",
    "rules.verdict",
    "sdk.client",
    "sdk.http_heads",
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
    "report.attributes",
    "report.ids",
    "report.log",
    "report.metrics",
    "report.reporter",
    "report.spans",
    "report.tracing",
)
COUNTED_BY = {f"report.metrics.Metrics.{name}" for name in ("internal_error", "collect", "_tell")}
OUTERMOST = {"watch.deadlines.Deadlines._work"}
"""Where a thread of ours begins, there is nobody around it to count."""
POINTS = [point for point in points(*ON_THE_PATH) if point.name not in COUNTED_BY | OUTERMOST]

RULES: list[Json] = [
    {"when": {"method": "GET", "token": None}, "respond": {"sse": [{"id": "g5", "retry": 10, "note": "a"}]}},
    {"when": {"method": "GET", "token": "g5"}, "respond": {"sse": [{"comment": "ping"}, {"note": "b"}], "end": "hold"}},
    {"when": {"rpc": "tools/list", "nth": 1}, "respond": {"sse": [{"id": "l1", "answer": True}]}},
    {"when": {"rpc": "tools/call", "nth": "2+"}, "respond": {"sse": [{"id": "c1", "result": "other"}]}},
    {"when": {"method": "GET", "token": "1", "nth": 1}, "respond": {"end": "reset"}},
    *resumes(
        {"sse": [{"id": 1, "note": "c"}, {"id": 2, "note": "d"}, {"id": 2, "note": "e"}, {"id": 3, "result": "done"}]}
    ),
]
RESULT: list[Any] = ["done", ["a", "b", "c", "d", "e"], ["t"], "other"]
UNPROVEN = "standalone unproven no_event_ids"


async def application(peer: Peer, plugin: Plugin | None) -> list[Any]:
    """A call that is cut and resumed, a notification stream that is, a list of tools, and another call."""
    noted: list[str] = []

    async def note(params: Any) -> None:
        noted.append(params.data)

    async with connected(peer.url, logging_callback=note) as api:
        first = text_of(await api.call_tool("t", {}))
        tools = [tool.name for tool in (await api.list_tools()).tools]
        await until(lambda: len(noted) == 5)
        if plugin is not None:
            with anyio.move_on_after(0.2):  # time for the verdict of the proof timeout, if it still comes
                await until(lambda: UNPROVEN in attempts(plugin))
        second = text_of(await api.call_tool("t", {"n": 2}))
    return [first, sorted(noted), tools, second]


def played(plugin: Plugin | None) -> list[Any]:
    with served(*RULES) as peer:
        result: list[Any] = run("asyncio", lambda: application(peer, plugin))
    return result


@pytest.fixture
def plugin() -> Iterator[Plugin]:
    with plugged(proof_timeout=0.05, tracer_provider=TracerProvider()) as kit:
        yield kit


def test_without_the_plugin() -> None:
    assert played(None) == RESULT


def test_without_a_fault_most_points_are_passed(plugin: Plugin) -> None:
    with called(POINTS) as passed:
        assert played(plugin) == RESULT
    assert attempts(plugin) == {
        "request failed network_error": 1,
        "request proven replayed_event": 1,
        UNPROVEN: 1,
    }
    assert counts(plugin, "mcp_resume_violations_total", "rule") == {"event_id_collision": 1}
    assert faults(plugin) == {}
    assert len(passed) >= 100, sorted(passed)


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_a_fault_is_counted_and_the_application_never_learns(plugin: Plugin, point: Point) -> None:
    with planted(point) as fault:
        assert played(plugin) == RESULT
    assert bool(faults(plugin)) == bool(fault.struck)


GUARDED = ("sdk.client.ClientHooks._post", "sdk.http_tap.HttpTap._begin", "watch.connection.Connection.feed")


class Interruption(BaseException):
    """What no `except Exception` catches, and no event loop treats in a way of its own."""


def leaves(error: BaseException) -> list[BaseException]:
    return [leaf for inner in getattr(error, "exceptions", ()) for leaf in leaves(inner)] or [error]


@pytest.mark.parametrize("name", GUARDED)
def test_what_is_no_fault_passes_through(plugin: Plugin, name: str) -> None:
    """An interruption that happens to strike inside of us is the application's all the same."""
    (point,) = (point for point in POINTS if point.name == name)
    interruption = Interruption(name)
    with planted(point, interruption) as fault, served(*RULES) as peer, pytest.raises(BaseException) as caught:  # noqa: PT011 - alone, or in a group
        run("asyncio", lambda: application(peer, plugin))
    assert fault.struck
    assert interruption in leaves(caught.value)
    assert faults(plugin) == {}

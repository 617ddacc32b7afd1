"""Real SDK clients over real sockets: every entry point, both event loops, what the application sees."""

from __future__ import annotations

import gc
import importlib
import warnings
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import pytest

from otel_mcp_resume.sdk.exchange import Exchange
from tests.sdk.client_world import (
    BACKENDS,
    HTTP,
    IS_MODERN,
    RESUMES,
    attempts,
    connected,
    counts,
    faults,
    plugged,
    resume,
    resumes,
    run,
    served,
    text_of,
    until,
)
from tests.wire.driven.steps import Json

pytestmark = [
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),  # trio tells that the SDK closes none
    pytest.mark.parametrize("backend", BACKENDS),
]
needs_resumption = pytest.mark.skipif(not RESUMES, reason="before 1.23 the SDK re-opens no stream of a request")
needs_context = pytest.mark.skipif(not IS_MODERN, reason="before 2.0 callbacks run in a context of their own")

clients: Any = importlib.import_module("mcp.client.streamable_http")
mcp: Any = importlib.import_module("mcp")
Connect = Callable[[str], AbstractAsyncContextManager[Any]]


@asynccontextmanager
async def own_http_client(url: str) -> AsyncGenerator[Any, None]:
    async with HTTP.AsyncClient() as http, connected(url, http) as api:
        yield api


@asynccontextmanager
async def older_name(url: str) -> AsyncGenerator[Any, None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        streams = clients.streamablehttp_client(url)
    async with streams as (read, write, _), mcp.ClientSession(read, write) as api:
        await api.initialize()
        yield api


@asynccontextmanager
async def newer_client(url: str) -> AsyncGenerator[Any, None]:
    async with mcp.Client(url) as api:
        yield api


def entry_points() -> dict[str, Connect]:
    """All that this SDK has."""
    found: dict[str, Connect] = {}
    if hasattr(clients, "streamable_http_client"):
        found |= {"streamable_http_client": connected, "with an HTTP client of one's own": own_http_client}
    if hasattr(clients, "streamablehttp_client"):
        found["streamablehttp_client"] = older_name
    if hasattr(mcp, "Client"):
        found["Client"] = newer_client
    return found


ENTRY_POINTS = entry_points()


@needs_resumption
@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_a_call_is_cut_and_resumed(backend: str, entry: str) -> None:
    async def play() -> str:
        async with ENTRY_POINTS[entry](peer.url) as api:
            return text_of(await api.call_tool("t", {}))

    with plugged() as plugin, served(*resumes()) as peer:
        assert run(backend, play) == "done"
        assert attempts(plugin) == {"request proven replayed_event": 1}
        assert counts(plugin, "mcp_resume_open_streams", "stream") == {}
        assert counts(plugin, "mcp_resume_open_sessions", "side") == {}
        assert counts(plugin, "mcp_resume_disconnects_total", "stream", "cause") == {
            "request closed": 1,
            "request completed": 1,
        }
        assert faults(plugin) == {}


def test_an_application_shows_a_token_that_it_kept(backend: str) -> None:
    """This is all there is before 1.23."""

    async def play() -> str:
        async with connected(peer.url) as api:
            return text_of(await resume(api, "1"))

    answer: Json = {"sse": [{"id": 2, "result": "done", "to": 7}]}
    with plugged() as plugin, served(*resumes(answer)) as peer:
        assert run(backend, play) == "done"
        assert attempts(plugin) == {"request proven replayed_event": 1}
        assert faults(plugin) == {}


@needs_resumption
@pytest.mark.parametrize(
    ("second", "verdict"), [("S1", "request proven replayed_event"), ("S2", "request gap session_changed")]
)
def test_a_proxy_that_names_the_session_twice(backend: str, second: str, verdict: str) -> None:
    """The SDK joins what `initialize` named, and shows that from then on."""

    async def play() -> str:
        async with connected(peer.url) as api:
            return text_of(await api.call_tool("t", {}))

    def twice(value: str) -> Json:
        return {"headers": {"Mcp-Session-Id": "S1", "mcp-session-id": value}}

    began: Json = {"when": {"rpc": "initialize"}, "respond": {"answer": True, **twice("S1")}}
    answer: Json = {"sse": [{"id": 2, "result": "done"}], **twice(second)}
    with plugged() as plugin, served(began, *resumes(answer)) as peer:
        assert run(backend, play) == "done"
        assert peer.seen(rpc="tools/call", session="S1, S1") == 1
        assert attempts(plugin) == {verdict: 1}
        assert faults(plugin) == {}


def standalone(*frames: Json, end: str = "hold") -> list[Json]:
    """A standalone stream that is cut after event 5, and goes on with `frames`."""
    return [
        {"when": {"method": "GET", "token": None}, "respond": {"sse": [{"id": 5, "retry": 10, "note": "a"}]}},
        {"when": {"method": "GET", "token": "5"}, "respond": {"sse": list(frames), "end": end}},
    ]


@needs_resumption
@pytest.mark.parametrize(
    ("frames", "verdict"),
    [
        ([{"id": 6, "note": "b"}], "standalone proven replayed_event"),
        ([{"id": 4, "note": "b"}], "standalone gap event_id_regression"),
        ([{"comment": "ping"}], "standalone unproven heartbeat_only"),
    ],
)
def test_the_verdict_falls_while_the_stream_runs(backend: str, frames: list[Json], verdict: str) -> None:
    """Also that of the proof timeout, with no task of ours in the event loop."""

    async def play() -> dict[str, float]:
        async with connected(peer.url):
            await until(lambda: attempts(plugin))
            assert counts(plugin, "mcp_resume_open_streams", "stream") == {"standalone": 1}
            return attempts(plugin)

    with plugged(proof_timeout=0.3) as plugin, served(*standalone(*frames)) as peer:
        assert run(backend, play) == {verdict: 1}
        assert attempts(plugin) == {verdict: 1}, "leaving adds none"
        assert faults(plugin) == {}


@needs_resumption
def test_a_call_that_is_cancelled_while_it_is_resumed(backend: str) -> None:
    async def play() -> str:
        async with connected(peer.url) as api:
            with anyio.move_on_after(1.0) as scope:
                await api.call_tool("t", {})
            assert scope.cancelled_caught
            return "left"

    with plugged() as plugin, served(*resumes({"sse": [{"comment": "ping"}], "end": "hold"})) as peer:
        assert run(backend, play) == "left"
        assert counts(plugin, "mcp_resume_open_streams", "stream") == {}
        assert counts(plugin, "mcp_resume_disconnects_total", "cause").keys() == {"closed", "cancelled"}
        assert "abandoned" not in " ".join(attempts(plugin))
        assert faults(plugin) == {}


@needs_resumption
def test_taken_away_in_the_middle_of_a_stream(backend: str) -> None:
    """What is under way runs on, and nobody looks any more."""
    waits = {"sse": [{"id": 2, "note": "b"}, {"await": "tools/list"}, {"id": 3, "result": "done"}]}

    results: list[str] = []

    async def play() -> None:
        async with connected(peer.url) as api, anyio.create_task_group() as tasks:

            async def call() -> None:
                results.append(text_of(await api.call_tool("t", {})))

            tasks.start_soon(call)
            await until(lambda: attempts(plugin))
            plugin.close()
            await api.list_tools()

    with plugged() as plugin, served(*resumes(waits)) as peer:
        run(backend, play)
        assert results == ["done"]
        assert attempts(plugin) == {"request proven replayed_event": 1}
        assert counts(plugin, "mcp_resume_open_streams", "stream") == {}
        assert faults(plugin) == {}
        async_client = HTTP.AsyncClient
        assert not hasattr(async_client.send, "__wrapped__")


@needs_context
def test_what_a_callback_requests_over_the_same_http_client_is_the_applications(backend: str) -> None:
    asked: list[int] = []

    async def play() -> None:
        async with HTTP.AsyncClient() as http:

            async def callback(*_: Any) -> None:
                asked.append((await http.get(peer.url.replace("/mcp", "/other"))).status_code)

            async with connected(peer.url, http, logging_callback=callback):
                await until(lambda: len(asked) == 2)

    other: Json = {"when": {"method": "GET", "path": "/other"}, "respond": {"status": 404}}
    with plugged() as plugin, served(other, *standalone({"id": 6, "note": "b"})) as peer:
        run(backend, play)
        assert asked == [404, 404]
        assert attempts(plugin) == {"standalone proven replayed_event": 1}
        assert faults(plugin) == {}


@needs_resumption
def test_what_was_called_is_not_kept_when_the_call_is_over(backend: str) -> None:
    """The loop may still hold its context, in timers that were cancelled: arguments may be large."""

    async def play() -> list[Exchange]:
        async with connected(peer.url) as api:
            assert text_of(await api.call_tool("t", {"much": "x"})) == "done"
            return [each for each in gc.get_objects() if type(each) is Exchange and each.call is not None]

    with plugged() as plugin, served(*resumes()) as peer:
        assert [each for each in run(backend, play) if peer.url.startswith(each.transport.origin)] == []
        assert faults(plugin) == {}

"""The HTTP+SSE client of the SDK: its stream is the session, and what it posts is no stream at all."""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest

from tests.sdk.client_world import BACKENDS, attempts, counts, faults, plugged, run, served, text_of, until
from tests.wire.driven.steps import Json

pytestmark = [
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),  # trio tells that the SDK closes none
    pytest.mark.parametrize("backend", BACKENDS),
]

mcp: Any = importlib.import_module("mcp")
legacy: Any = importlib.import_module("mcp.client.sse")


def session(*frames: Json, end: str = "hold") -> Json:
    """A stream that names its session, answers the handshake, and goes on with `frames`."""
    began: list[Json] = [
        {"event": "endpoint", "data": "/messages?session_id=L1"},
        {"await": "initialize"},
        {"event": "message", "answer": True},
    ]
    return {"when": {"method": "GET", "path": "/sse"}, "respond": {"sse": [*began, *frames], "end": end}}


ANSWERED: tuple[Json, ...] = (
    {"await": "tools/call"},
    {"event": "message", "note": "working"},
    {"event": "message", "answer": True},
    {"await": "tools/list"},
    {"event": "message", "answer": True},
)


@asynccontextmanager
async def connected(url: str, **options: Any) -> AsyncGenerator[Any, None]:
    async with legacy.sse_client(url, **options) as (read, write), mcp.ClientSession(read, write) as api:
        await api.initialize()
        yield api


def open_sessions(plugin: Any) -> dict[str, float]:
    return counts(plugin, "mcp_resume_open_sessions", "generation")


def test_a_session_from_its_handshake_to_its_end(backend: str) -> None:
    async def play() -> str:
        async with connected(peer.url.replace("/mcp", "/sse")) as api:
            text = text_of(await api.call_tool("t", {}))
            assert open_sessions(plugin) == {"sse": 1}
            assert counts(plugin, "mcp_resume_open_streams", "generation", "stream") == {"sse session": 1}
            return text

    with plugged() as plugin, served(session(*ANSWERED)) as peer:
        assert run(backend, play) == "ok"
        assert peer.seen(path="/messages", method="POST") >= 3
        assert attempts(plugin) == {}, "a post is no attempt"
        assert counts(plugin, "mcp_resume_events_total", "stream")["session"] >= 3
        assert counts(plugin, "mcp_resume_disconnects_total", "stream", "cause") == {"session cancelled": 1}
        assert open_sessions(plugin) == {}
        assert counts(plugin, "mcp_resume_open_streams", "stream") == {}
        assert counts(plugin, "mcp_resume_violations_total", "rule") == {}
        assert faults(plugin) == {}


def test_a_post_that_is_refused_is_no_attempt_either(backend: str) -> None:
    async def play() -> None:
        async with connected(peer.url.replace("/mcp", "/sse")) as api:
            with anyio.move_on_after(0.5), suppress(Exception):
                await api.call_tool("t", {})

    gone: Json = {"when": {"rpc": "tools/call"}, "respond": {"status": 404}}
    with plugged() as plugin, served(session(), gone) as peer:
        run(backend, play)
        assert peer.seen(rpc="tools/call") == 1
        assert counts(plugin, "mcp_resume_violations_total", "rule") == {}
        assert (attempts(plugin), faults(plugin)) == ({}, {})


def test_a_stream_that_ends_takes_the_session_along(backend: str) -> None:
    async def play() -> None:
        with suppress(Exception):  # the SDK's reader tells of the reset, also where nobody listens any more
            async with connected(peer.url.replace("/mcp", "/sse")):
                await until(lambda: counts(plugin, "mcp_resume_disconnects_total", "cause"))

    # A reset takes along what was not read yet: it waits until the client has its answer.
    with plugged() as plugin, served(session({"await": "notifications/initialized"}, end="reset")) as peer:
        run(backend, play)
        assert counts(plugin, "mcp_resume_disconnects_total", "stream", "cause") == {"session reset": 1}
        assert (attempts(plugin), open_sessions(plugin), faults(plugin)) == ({}, {}, {})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # older ones leave their streams open
@pytest.mark.parametrize("status", [404, 500])
def test_a_session_that_does_not_begin(backend: str, status: int) -> None:
    async def play() -> str:
        try:
            async with connected(peer.url.replace("/mcp", "/sse")):
                return "began"
        except Exception as error:  # noqa: BLE001 - an exception group, or what was in it
            return str([*getattr(error, "exceptions", ()), error][0])

    refused: Json = {"when": {"path": "/sse"}, "respond": {"status": status}}
    with plugged() as plugin, served(refused) as peer:
        assert str(status) in run(backend, play)
        assert (attempts(plugin), open_sessions(plugin), faults(plugin)) == ({}, {}, {})
        assert plugin.runtime.client.streams == set()


def test_two_sessions_beside_each_other(backend: str) -> None:
    texts: list[str] = []

    async def one(url: str) -> None:
        async with connected(url) as api:
            texts.append(text_of(await api.call_tool("t", {})))

    async def play(first: str, second: str) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, first)
            tasks.start_soon(one, second)

    with plugged() as plugin, served(session(*ANSWERED)) as peer, served(session(*ANSWERED)) as other:
        urls = [each.url.replace("/mcp", "/sse") for each in (peer, other)]
        run(backend, lambda: play(*urls))
        assert texts == ["ok", "ok"]
        assert counts(plugin, "mcp_resume_disconnects_total", "cause") == {"cancelled": 2}
        assert (attempts(plugin), open_sessions(plugin), faults(plugin)) == ({}, {}, {})

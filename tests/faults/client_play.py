"""What an application sees of a client whose streams are cut and resumed, in both generations with a session."""

from __future__ import annotations

import importlib
from typing import Any

import anyio

from tests.sdk.client_world import RESUMES, connected, resumes, served, text_of, until
from tests.wire.driven.steps import Json

__all__ = ["play"]

STREAMABLE: list[Json] = [
    {"when": {"method": "GET", "token": None}, "respond": {"sse": [{"id": "g5", "retry": 10, "note": "a"}]}},
    {"when": {"method": "GET", "token": "g5"}, "respond": {"sse": [{"comment": "ping"}, {"note": "b"}], "end": "hold"}},
    {"when": {"rpc": "tools/list", "nth": 1}, "respond": {"sse": [{"id": "l1", "answer": True}]}},
    {"when": {"rpc": "tools/call", "nth": "2+"}, "respond": {"sse": [{"id": "c1", "result": "other"}]}},
    {"when": {"method": "GET", "token": "1", "nth": 1}, "respond": {"end": "reset"}},
    *resumes(
        {"sse": [{"id": 1, "note": "c"}, {"id": 2, "note": "d"}, {"id": 2, "note": "e"}, {"id": 3, "result": "done"}]}
    ),
]
WITHOUT_RESUMING: list[Json] = [
    {
        "when": {"method": "GET"},
        "respond": {"sse": [{"id": "g5", "note": "a"}, {"comment": "ping"}, {"note": "b"}], "end": "hold"},
    },
    *STREAMABLE[2:4],
    {
        "when": {"rpc": "tools/call"},
        "respond": {
            "sse": [{"id": 1, "note": "c"}, {"id": 2, "note": "d"}, {"id": 2, "note": "e"}, {"id": 3, "result": "done"}]
        },
    },
]
"""For an SDK whose client would wait for ever for what comes after a cut."""
LEGACY: list[Json] = [
    {
        "when": {"method": "GET"},
        "respond": {
            "sse": [
                {"event": "endpoint", "data": "/messages?session_id=L1"},
                {"await": "initialize"},
                {"event": "message", "answer": True},
                {"await": "tools/call"},
                {"event": "message", "id": "7", "result": "old", "to": "$id"},
                {"await": "tools/list"},
                {"event": "message", "answer": True},
            ],
            "end": "hold",
        },
    },
]


async def play() -> list[Any]:
    """Notifications, results, an error of the peer, and a call that is cancelled."""
    with served(*(STREAMABLE if RESUMES else WITHOUT_RESUMING)) as peer:
        result = await _streamable(peer.url)
        result.append(peer.seen(method="GET"))
    with served(*LEGACY) as peer:
        result.append(await _legacy(peer.url.replace("/mcp", "/sse")))
    return result


async def _streamable(url: str) -> list[Any]:
    noted: list[str] = []

    async def note(params: Any) -> None:
        noted.append(params.data)

    async with connected(url, logging_callback=note) as api:
        first = text_of(await api.call_tool("t", {}))
        tools = [tool.name for tool in (await api.list_tools()).tools]
        await until(lambda: len(noted) == 5)
        await anyio.sleep(0.1)  # for the verdict of the proof timeout, which comes from a thread of ours
        second = text_of(await api.call_tool("t", {"n": 2}))
        with anyio.CancelScope() as scope:
            scope.cancel()
            await api.call_tool("t", {"n": 3})
        return [first, sorted(noted), tools, second, scope.cancelled_caught]


async def _legacy(url: str) -> Any:
    mcp: Any = importlib.import_module("mcp")
    connect = importlib.import_module("mcp.client.sse").sse_client
    async with connect(url) as streams, mcp.ClientSession(streams[0], streams[1]) as api:
        await api.initialize()
        return text_of(await api.call_tool("t", {}))

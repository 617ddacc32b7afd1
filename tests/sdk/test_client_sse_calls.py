"""Calls over HTTP+SSE: their answers come on the stream of the session, and are lost with it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

import anyio
import pytest

from tests.sdk.client_world import BACKENDS, HTTP, IS_MODERN, counts, faults, plugged, run, served, text_of, until
from tests.sdk.test_client_sse import connected
from tests.wire.driven.steps import Json

pytestmark = [
    # What a 2.x or older 1.x leaves open when its stream is cut.
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.parametrize("backend", BACKENDS),
]

ANSWER: Json = {"event": "message", "answer": True}
DUPLICATE = {"sse duplicate_call": 1}


def session(number: int, *frames: Json, end: str = "hold") -> Json:
    """The stream of the N-th session, which is named like the others."""
    began: list[Json] = [
        {"event": "endpoint", "data": "/messages?session_id=L1"},
        {"await": "initialize", "nth": number},
        ANSWER,
    ]
    return {
        "when": {"method": "GET", "path": "/sse", "nth": number},
        "respond": {"sse": [*began, *frames], "end": end},
    }


def awaited(call: int) -> Json:
    return {"await": "tools/call", "nth": call}


def answered(call: int, listing: int) -> list[Json]:
    """The answer to the N-th call, and the list of tools that the SDK looks the result up in."""
    return [awaited(call), ANSWER, {"await": "tools/list", "nth": listing}, ANSWER]


def calling(url: str, arguments: Json, *, times: int = 1) -> Callable[[], Awaitable[str]]:
    """A session in which `pay` is called: the answer, or what came instead."""

    async def play() -> str:
        said = "silence"
        try:
            async with connected(url.replace("/mcp", "/sse")) as api:
                for _ in range(times):
                    with anyio.move_on_after(1):
                        said = text_of(await api.call_tool("pay", arguments))
        except Exception as error:  # noqa: BLE001 - an exception group, or what was in it
            return type(error).__name__
        return said

    return play


def violations(plugin: Any) -> dict[str, float]:
    return counts(plugin, "mcp_resume_violations_total", "generation", "rule")


def test_a_call_whose_answer_went_with_the_stream_is_made_again(backend: str) -> None:
    streams = [
        session(1, awaited(1), end="eof"),
        *(session(number, *answered(number, number - 1)) for number in (2, 3, 4)),
    ]
    with plugged() as plugin, served(*streams) as peer:
        assert run(backend, calling(peer.url, {"order": 7})) != "ok"
        assert run(backend, calling(peer.url, {"order": 8})) == "ok", "another order"
        assert violations(plugin) == {}
        assert run(backend, calling(peer.url, {"order": 7})) == "ok"
        assert violations(plugin) == DUPLICATE
        assert run(backend, calling(peer.url, {"order": 7})) == "ok", "the one before had its answer"
        assert (violations(plugin), faults(plugin)) == (DUPLICATE, {})


LISTED: Json = {"name": "pay", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": True}}
FIRST: dict[str, tuple[Sequence[Json], str]] = {
    "answered": (answered(1, 1), "eof"),
    "refused": ([{"sleep": 0.3}], "eof"),
    "left": ([], "hold"),
    "harmless": (
        [
            {"await": "tools/list"},
            {"event": "message", "rpc": {"id": "$id", "result": {"tools": [LISTED]}}},
            awaited(1),
        ],
        "eof",
    ),
}


@pytest.mark.parametrize("first", FIRST)
def test_one_that_is_owed_nothing_may_be_made_again(backend: str, first: str) -> None:
    async def list_and_call() -> None:
        async with connected(peer.url.replace("/mcp", "/sse")) as api:
            await api.list_tools()
            await api.call_tool("pay", {"order": 7})

    async def attempted() -> None:
        with contextlib.suppress(Exception):  # it is cut
            await list_and_call()

    refusal: Json = {"when": {"rpc": "tools/call", "nth": 1}, "respond": {"status": 400}}
    frames, end = FIRST[first]
    rules = [session(1, *frames, end=end), session(2, *answered(2, 1 + (first in ("answered", "harmless"))))]
    with plugged() as plugin, served(*([refusal] if first == "refused" else []), *rules) as peer:
        run(backend, attempted if first == "harmless" else calling(peer.url, {"order": 7}))
        assert run(backend, calling(peer.url, {"order": 7})) == "ok"
        assert peer.seen(rpc="tools/call") == 2
        assert (violations(plugin), faults(plugin)) == ({}, {})


def test_after_a_404_the_sdk_posts_no_more_and_a_new_session_of_that_name_is_alive(backend: str) -> None:
    gone: Json = {"when": {"rpc": "tools/call", "nth": 1}, "respond": {"status": 404}}
    rules = [session(1), session(2, *answered(2, 1))]
    with plugged() as plugin, served(gone, *rules) as peer:
        assert run(backend, calling(peer.url, {}, times=2)) != "ok"
        assert peer.seen(rpc="tools/call") == 1, "there is no use of a dead session that could be reported"
        assert run(backend, calling(peer.url, {})) == "ok"
        assert peer.seen(rpc="initialize", path="/messages?session_id=L1") + peer.seen(rpc="initialize") >= 2
        assert (violations(plugin), faults(plugin)) == ({}, {})


async def failing_call(url: str, hook: str, error: Exception, over: Callable[[], object]) -> None:
    """A session whose POST of a call ends in `error`, before or after the server has it; left once `over` holds."""

    async def fail(about: Any) -> None:
        request = getattr(about, "request", about) if hook == "response" else about
        if b'"tools/call"' in await request.aread():
            raise error

    def factory(**options: Any) -> Any:
        return HTTP.AsyncClient(**options, event_hooks={hook: [fail]})

    address = url.replace("/mcp", "/sse")
    with contextlib.suppress(Exception):  # what the SDK makes of it is its own affair
        async with connected(address, httpx_client_factory=factory) as api, anyio.create_task_group() as group:
            group.start_soon(api.call_tool, "pay", {"order": 7})
            await until(over)
            group.cancel_scope.cancel()


def test_one_that_never_left_the_process_is_no_first_call(backend: str) -> None:
    def is_cut() -> bool:
        return bool(counts(plugin, "mcp_resume_disconnects_total", "stream"))

    streams = [session(1, {"sleep": 0.5}, end="eof"), session(2, *answered(1, 1))]
    with plugged() as plugin, served(*streams) as peer:
        run(backend, lambda: failing_call(peer.url, "request", HTTP.ConnectError("refused"), is_cut))
        assert peer.seen(rpc="tools/call") == 0
        assert run(backend, calling(peer.url, {"order": 7})) == "ok"
        assert (violations(plugin), faults(plugin)) == ({}, {})


@pytest.mark.parametrize("is_answered", [True, False])
def test_one_whose_post_failed_may_be_answered_on_the_stream(backend: str, *, is_answered: bool) -> None:
    def is_over() -> bool:
        return counts(plugin, "mcp_resume_events_total", "stream").get("session", 0) >= 2

    frames: list[Json] = [awaited(1), ANSWER if is_answered else {"event": "message", "note": "working"}]
    streams = [session(1, *frames), session(2, *answered(2, 1))]
    with plugged() as plugin, served(*streams) as peer:
        run(backend, lambda: failing_call(peer.url, "response", HTTP.ReadTimeout("slow"), is_over))
        assert peer.seen(rpc="tools/call") == 1
        assert run(backend, calling(peer.url, {"order": 7})) == "ok"
        assert (violations(plugin), faults(plugin)) == ({} if is_answered else DUPLICATE, {})


def test_a_server_that_answers_a_number_with_its_text_has_answered(backend: str) -> None:
    number = 2 if IS_MODERN else 1
    reply: Json = {"event": "message", "rpc": {"id": str(number), "result": {"content": []}}}
    streams = [session(1, awaited(1), reply, end="eof"), session(2, awaited(2), ANSWER)]
    with plugged() as plugin, served(*streams) as peer:
        run(backend, calling(peer.url, {"order": 7}))
        assert [request.rpc["id"] for request in peer.requests if request.matches({"rpc": "tools/call"})] == [number]
        run(backend, calling(peer.url, {"order": 7}))
        assert peer.seen(rpc="tools/call") == 2
        assert (violations(plugin), faults(plugin)) == ({}, {})


def test_sessions_that_share_an_http_client_are_told_apart(backend: str) -> None:
    def named(number: int, *frames: Json, end: str = "hold") -> Json:
        rule = session(number, *frames, end=end)
        rule["respond"]["sse"][0] = {"event": "endpoint", "data": f"/messages?session_id=L{number}"}
        return rule

    async def play() -> None:
        @contextlib.asynccontextmanager
        async def shared(**_: Any) -> AsyncGenerator[Any, None]:
            yield http

        def begun() -> contextlib.AbstractAsyncContextManager[Any]:
            return connected(address, httpx_client_factory=shared)

        async with HTTP.AsyncClient() as http:
            async with begun() as first, begun():
                with anyio.move_on_after(1), contextlib.suppress(Exception):
                    await first.call_tool("pay", {"order": 7})
            params = {"name": "pay", "arguments": {"order": 7}}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            await http.post(address + "/elsewhere", json=body)
            assert violations(plugin) == {}, "a post of the application's own"
            async with begun() as third:
                with anyio.move_on_after(1):
                    await third.call_tool("pay", {"order": 7})

    streams = named(1, awaited(1), end="eof"), named(2), named(3, {"await": "tools/call", "nth": 3}, ANSWER)
    with plugged() as plugin, served(*streams) as peer:
        address = peer.url.replace("/mcp", "/sse")
        with contextlib.suppress(Exception):  # the cut of the first session reaches whoever is in it
            run(backend, play)
        assert peer.seen(rpc="tools/call") == 3
        assert (violations(plugin), faults(plugin)) == (DUPLICATE, {})

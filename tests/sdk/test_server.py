"""Every server that a Python user runs on the SDK: the verdicts come, and everything is given back."""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from otel_mcp_resume.rules.terms import Disconnect, Generation, Outcome, Reason, Stream, UndeliveredCause, ViolationRule
from otel_mcp_resume.watch.facts import SessionOpened, StreamClosed, StreamOpened
from tests.sdk.server_apps import (
    bare_transport_app,
    high_level_app,
    in_fastapi,
    in_starlette,
    manager_app,
    manager_class,
    sse_app,
)
from tests.sdk.server_side import PROTOCOL, Observed, given_back, observed, playing, quiet
from tests.wire.driven.event_store import make_store
from tests.wire.driven.steps import Json
from tests.wire.session import Session

# What the scripts of the test's tool send is deprecated in 2.x, and what older servers send all the same.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.* is deprecated as of 2026-07-28"),
    pytest.mark.filterwarnings("ignore:Field .lifespan. has an incomplete definition"),  # older mcp, of its settings
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # older mcp leaves streams unclosed
]

HAS_PRIMING = PROTOCOL == "2025-11-25"
COMPLETE = (Outcome.PROVEN, Reason.REPLAY_COMPLETE)


def store() -> Any:
    return make_store({"ids": "uuid"})()


def bare() -> Any:
    return bare_transport_app([], event_store=store())


APPS: dict[str, Callable[[], Any]] = {
    "high level": lambda: high_level_app(event_store=store()),
    "manager": lambda: manager_app(event_store=store()),
    "transport without a manager": bare,
    "mounted in Starlette": lambda: in_starlette(x=high_level_app(event_store=store())),
    "mounted in FastAPI": lambda: in_fastapi(x=high_level_app(event_store=store())),
}


def cut_and_resumed(session: str = "A", text: str = "missed") -> list[Json]:
    """The standalone stream is cut and resumed; two notifications come from the store, a third one live."""
    before, resumed = f"{session} before", f"{session} resumed"
    return [
        {"initialize": {"session": session, "protocol": PROTOCOL}},
        {"get": {"session": session, "as": before, "no_wait": True}},
        {"sleep": 0.2},
        {"call": {"session": session, "play": [{"announce": 1, "as": "seen"}]}},
        {"read": {"from": before, "events": 1, "save": before}},
        {"drop": {"request": before}},
        {"call": {"session": session, "play": [{"announce": 2, "as": text}]}},
        {"sleep": 0.2},
        {"get": {"session": session, "as": resumed, "token": f"${before}"}},
        {"read": {"from": resumed, "events": 2 + HAS_PRIMING}},
        {"call": {"session": session, "play": [{"announce": 1, "as": "live"}]}},
        {"read": {"from": resumed, "events": 1}},
    ]


@pytest.mark.parametrize("name", APPS)
def test_resumed(name: str) -> None:
    if "FastAPI" in name:
        pytest.importorskip("fastapi", reason="FastAPI is not installed")
    path = "/x/mcp" if "mounted" in name else "/mcp"

    async def play(seen: Observed) -> None:
        async with playing(APPS[name]()) as client:
            client.sessions["A"] = Session(PROTOCOL, path=path)
            await client.play(cut_and_resumed())
            texts = client.exchanges["A resumed"].summary()["texts"]
            assert texts == ["missed 0", "missed 1", "live 0"]
            await seen.until(lambda: seen.verdicts == [COMPLETE])
            assert seen.events[Generation.STREAMABLE_HTTP, Stream.STANDALONE] == 4
            assert len(seen.of(SessionOpened)) == 1
            await client.play([{"delete": {"session": "A"}}])
            await given_back(seen)

    with observed() as seen:
        asyncio.run(play(seen))
        assert all(seen.hooks.values()), seen.hooks


def test_a_server_that_stops_gives_everything_back() -> None:
    async def play(seen: Observed) -> None:
        async with playing(high_level_app(event_store=store())) as client:
            await client.play(cut_and_resumed())
        await given_back(seen)

    with observed() as seen:
        asyncio.run(play(seen))


def test_two_applications_in_one_process() -> None:
    shared = store()
    app = in_starlette(one=high_level_app(event_store=shared), two=manager_app(event_store=store()))

    async def play(seen: Observed) -> None:
        async with playing(app) as client:
            client.sessions |= {"A": Session(PROTOCOL, path="/one/mcp"), "B": Session(PROTOCOL, path="/two/mcp")}
            await client.play([{"parallel": [cut_and_resumed("A", "first"), cut_and_resumed("B", "second")]}])
            assert client.exchanges["A resumed"].summary()["texts"] == ["first 0", "first 1", "live 0"]
            assert client.exchanges["B resumed"].summary()["texts"] == ["second 0", "second 1", "live 0"]
            await seen.until(lambda: seen.verdicts == [COMPLETE, COMPLETE])
        await given_back(seen)

    with observed() as seen:
        asyncio.run(play(seen))


def test_the_package_that_scopes_its_store_by_session() -> None:
    fastmcp = pytest.importorskip("fastmcp", reason="the FastMCP package is not installed")
    event_store = importlib.import_module("fastmcp.server.event_store")
    script = importlib.import_module("tests.wire.driven.tool_script")
    server = fastmcp.FastMCP("test")

    async def play_tool(ctx: Any, script_: list[Any]) -> str:
        context = type("Context", (), {"session": ctx.session, "request_id": ctx.request_id})()
        return str(await script.play_script(context, script_))

    async def tool(ctx: Any, script: list[Any]) -> str:
        return await play_tool(ctx, script)

    tool.__annotations__ = {"ctx": fastmcp.Context, "script": list[Any], "return": str}
    server.tool(name="play")(tool)

    async def play(seen: Observed) -> None:
        async with playing(server.http_app(event_store=event_store.EventStore())) as client:
            await client.play(cut_and_resumed())
            assert client.exchanges["A resumed"].summary()["texts"] == ["missed 0", "missed 1", "live 0"]
            await seen.until(lambda: seen.verdicts == [COMPLETE])
            token = client.saved["A before"]
            client.saved["foreign"] = token
            await client.play(
                [
                    {"initialize": {"session": "B", "protocol": PROTOCOL}},
                    {"get": {"session": "B", "as": "foreign", "token": "$foreign"}},
                    {"read": {"from": "foreign", "until": "end"}},
                ]
            )
            await seen.until(lambda: len(seen.verdicts) == 2)
            assert seen.verdicts[1] == (Outcome.GAP, Reason.UNKNOWN_TOKEN_ACCEPTED)

    with observed() as seen:
        asyncio.run(play(seen))


def test_a_manager_that_passes_a_copy_of_the_scope_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is still one request."""
    manager = manager_class()

    async def play(seen: Observed) -> None:
        async with playing(manager_app(event_store=store())) as client:
            await client.play(
                [
                    {"initialize": {"session": "A", "protocol": PROTOCOL}},
                    {"call": {"session": "A", "as": "call", "play": [{"emit": 2}]}},
                    {"read": {"from": "call", "until": "end"}},
                ]
            )
            await seen.until(lambda: len(seen.of(StreamClosed)) == 2)
        assert {fact.cause for fact in seen.of(StreamClosed)} == {Disconnect.COMPLETED}
        assert sum(seen.events.values()) == 4
        await given_back(seen)

    with observed() as seen:
        passed_on = manager._handle_stateful_request

        async def copying(self: Any, scope: Any, receive: Any, send: Any) -> None:
            await passed_on(self, dict(scope), receive, send)

        monkeypatch.setattr(manager, "_handle_stateful_request", copying)
        asyncio.run(play(seen))
        monkeypatch.undo()


def test_json_mode() -> None:
    async def play(seen: Observed) -> None:
        async with playing(high_level_app(json_response=True)) as client:
            await client.play(
                [
                    {"initialize": {"session": "A", "protocol": PROTOCOL}},
                    {"call": {"session": "A", "as": "call", "play": [{"emit": 2}]}},
                    {"read": {"from": "call", "until": "end"}},
                    {"get": {"session": "A", "as": "stream", "no_wait": True}},
                    {"sleep": 0.2},
                    {"call": {"session": "A", "play": [{"announce": 2}]}},
                    {"read": {"from": "stream", "events": 2}},
                    {"delete": {"session": "A"}},
                ]
            )
            assert client.exchanges["call"].summary()["texts"] == ["played"]
        await given_back(seen)
        assert {fact.stream for fact in seen.of(StreamOpened)} == {Stream.STANDALONE}

    with observed() as seen:
        asyncio.run(play(seen))


def test_sse_gives_everything_back() -> None:
    async def play(seen: Observed) -> None:
        async with playing(sse_app()) as client:
            await client.play(
                [
                    {"connect_sse": {"session": "L", "as": "stream"}},
                    {"initialize": {"session": "L", "protocol": PROTOCOL}},
                    {"read": {"from": "stream", "events": 1}},
                    {"call": {"session": "L", "play": [{"emit": 2}]}},
                    {"read": {"from": "stream", "events": 3}},
                ]
            )
            named = str(client.exchanges["stream"].events[0].data).partition("session_id=")[2]
            assert [fact.context.session_id for fact in seen.of(SessionOpened)] == [named]
            assert [fact.context.session_id for fact in seen.of(StreamOpened)] == [named]
            assert seen.events == {(Generation.SSE, Stream.SESSION): 4}
            assert seen.open == (1, 1, 0)
            await client.play([{"drop": {"request": "stream"}}])
            await given_back(seen)

    with observed() as seen:
        asyncio.run(play(seen))


def test_a_question_on_sse_is_pending_until_it_is_answered() -> None:
    async def play(seen: Observed) -> None:
        async with playing(sse_app()) as client:
            await client.play(
                [
                    {"connect_sse": {"session": "L", "as": "stream"}},
                    {"initialize": {"session": "L", "protocol": PROTOCOL}},
                    {"read": {"from": "stream", "events": 1}},
                    {"call": {"session": "L", "play": [{"ask": "session"}]}},
                    {"read": {"from": "stream", "events": 1}},
                ]
            )
            assert set(seen.watch.oldest_pending()) == {Generation.SSE}
            await client.play([{"answer": {"session": "L", "from": "stream"}}])
            await seen.until(lambda: seen.open[2] == 0)
            await client.play([{"call": {"session": "L", "play": [{"ask": "session"}]}}, {"sleep": 0.2}])
            await client.play([{"drop": {"request": "stream"}}])
            await seen.until(lambda: seen.violations == [ViolationRule.PENDING_REQUEST_LOST])

    with observed() as seen:
        asyncio.run(play(seen))


def test_a_session_that_the_server_ends_when_idle() -> None:
    if "session_idle_timeout" not in inspect.signature(manager_class().__init__).parameters:
        pytest.skip("before mcp 1.26 no session ends when it is idle")
    manager = manager_app(event_store=store(), session_idle_timeout=0.3)

    async def play(seen: Observed) -> None:
        async with playing(manager) as client:
            await client.play(
                [
                    {"initialize": {"session": "A", "protocol": PROTOCOL}},
                    {"call": {"session": "A", "play": [{"announce": 1}]}},
                ]
            )
            await seen.until(lambda: seen.open == (0, 0, 0) and bool(seen.of(SessionOpened)))
            assert seen.undelivered == {UndeliveredCause.SESSION_ENDED: 1}
            assert seen.watch.remembered == (0, 0)

    with observed() as seen:
        asyncio.run(play(seen))


def test_hooks_that_come_after_a_session_began_judge_nothing_that_they_cannot_know() -> None:
    async def play() -> None:
        async with playing(high_level_app()) as client:
            await client.play([{"initialize": {"session": "A", "protocol": PROTOCOL}}])
            with observed() as seen:
                for name in ("one", "two"):
                    await client.play(
                        [
                            {"get": {"session": "A", "as": name, "no_wait": True}},
                            {"sleep": 0.2},
                            {"call": {"session": "A", "play": [{"announce": 1, "as": name}]}},
                            {"read": {"from": name, "events": 1}},
                            {"drop": {"request": name}},
                        ]
                    )
                await client.play([{"delete": {"session": "A"}}])
                await given_back(seen)
                assert seen.verdicts == [(Outcome.UNPROVEN, Reason.LEDGER_EVICTED)]

    with quiet():
        asyncio.run(play())


def test_hooks_that_go_before_a_session_ends_leave_it_as_it_is() -> None:
    async def play() -> None:
        async with playing(high_level_app(event_store=store())) as client:
            with observed() as seen:
                await client.play(cut_and_resumed())
            assert seen.verdicts == [COMPLETE]
            await client.play(
                [
                    {"call": {"session": "A", "play": [{"announce": 1, "as": "after"}]}},
                    {"read": {"from": "A resumed", "events": 1}},
                    {"delete": {"session": "A", "as": "farewell"}},
                ]
            )
            assert client.exchanges["A resumed"].summary()["texts"][-1] == "after 0"
            assert client.exchanges["farewell"].status == 200

    with quiet():
        asyncio.run(play())

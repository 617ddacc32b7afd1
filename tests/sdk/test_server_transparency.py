"""What the hooks must not do: change a byte, an order, an exception, or what the SDK can see of its own objects."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from otel_mcp_resume.rules.terms import Outcome, Reason
from otel_mcp_resume.sdk.server_streams import ObservedStreams
from otel_mcp_resume.watch.facts import EventsUndelivered
from otel_mcp_resume.watch.server import Exchange, ServerWatch, Session
from otel_mcp_resume.watch.server_inbox import Inbox
from otel_mcp_resume.watch.server_replay import Replay
from tests.sdk.server_apps import high_level_app, manager_class, sse_app
from tests.sdk.server_side import PROTOCOL, Observed, observed, playing, quiet
from tests.wire.driven.event_store import make_store
from tests.wire.driven.steps import Json

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* is deprecated as of 2026-07-28"),
    pytest.mark.filterwarnings("ignore:Field .lifespan. has an incomplete definition"),  # older mcp, of its settings
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # older mcp leaves streams unclosed
]

PLAY: list[Json] = [
    {"initialize": {"session": "A", "protocol": PROTOCOL}},
    {"get": {"session": "A", "as": "before", "no_wait": True}},
    {"sleep": 0.2},
    {"call": {"session": "A", "as": "one", "play": [{"announce": 2}, {"emit": 2}, {"ask": "own"}]}},
    {"sleep": 0.2},
    {"answer": {"session": "A", "from": "one"}},
    {"read": {"from": "one", "until": "end"}},
    {"read": {"from": "before", "events": 2, "save": "token"}},
    {"drop": {"request": "before"}},
    {"call": {"session": "A", "as": "two", "play": [{"announce": 3}]}},
    {"read": {"from": "two", "until": "end"}},
    {"get": {"session": "A", "as": "resumed", "token": "$token"}},
    {"sleep": 0.2},
    {"get": {"session": "A", "as": "unknown", "token": "no-such-id"}},
    {"get": {"session": "A", "as": "conflict"}},
    {"request": {"session": "A", "as": "tools", "rpc": {"method": "tools/list"}}},
    {"request": {"session": "A", "as": "nonsense", "rpc": {"method": "no/such"}}},
    {"read": {"from": "nonsense", "until": "end"}},
    {"delete": {"session": "A", "as": "farewell"}},
    {"get": {"session": "A", "as": "late"}},
]
CHANGING = re.compile(rb"[0-9a-f]{32}|\d\d:\d\d:\d\d")


class Transcript:
    """Every ASGI message that leaves, by exchange in the order of their beginning."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.exchanges: list[list[Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        messages: list[Any] = [scope["method"]]
        self.exchanges.append(messages)

        async def recording(message: Any) -> None:
            headers = [(name, CHANGING.sub(b"*", value)) for name, value in message.get("headers", ())]
            body = CHANGING.sub(b"*", message.get("body", b""))
            messages.append((message["type"], message.get("status"), headers, body, message.get("more_body")))
            await send(message)

        await self.app(scope, receive, recording)


def transcript(app: Any, play: list[Json]) -> list[list[Any]]:
    recorded = Transcript(app)

    async def run() -> None:
        async with playing(recorded) as client:
            await client.play(play)

    with quiet():
        asyncio.run(run())
    return recorded.exchanges


def stored_app() -> Any:
    return high_level_app(event_store=make_store({"ids": "global-int"})())


def test_every_byte_is_the_same() -> None:
    plain = transcript(stored_app(), PLAY)
    with observed() as seen:
        watched = transcript(stored_app(), PLAY)
        assert (Outcome.PROVEN, Reason.REPLAY_COMPLETE) in seen.verdicts
    assert watched == plain


def test_every_byte_of_the_older_generation_is_the_same() -> None:
    play: list[Json] = [
        {"connect_sse": {"session": "L", "as": "stream"}},
        {"initialize": {"session": "L", "protocol": PROTOCOL}},
        {"read": {"from": "stream", "events": 1}},
        {"call": {"session": "L", "play": [{"emit": 2}, {"ask": "own"}]}},
        {"read": {"from": "stream", "events": 3}},
        {"answer": {"session": "L", "from": "stream"}},
        {"read": {"from": "stream", "events": 1}},
    ]
    plain = transcript(sse_app(), play)
    with observed():
        watched = transcript(sse_app(), play)
    assert watched == plain


class TestObjects:
    def transport(self, store: Any) -> Any:
        module = importlib.import_module("mcp.server.streamable_http")
        return module.StreamableHTTPServerTransport(mcp_session_id="x", event_store=store)

    def test_the_streams_are_a_dictionary(self) -> None:
        with observed():
            streams = self.transport(None)._request_streams
            assert isinstance(streams, dict)
            assert isinstance(streams, ObservedStreams)
            assert streams == {}
            assert not streams
            streams["a"] = 1
            streams.update(b=2)
            assert streams.setdefault("b", 3) == 2
            assert streams.setdefault("c", 3) == 3
            assert set(streams.session.live) == {"a", "b", "c"}
            assert streams.pop("a") == 1
            assert streams.pop("a", None) is None
            with pytest.raises(KeyError):
                streams.pop("a")
            with pytest.raises(KeyError):
                del streams["a"]
            del streams["b"]
            assert streams.popitem() == ("c", 3)
            streams["d"] = 4
            streams.clear()
            assert streams == {}
            assert streams.session.live == {}

    def test_no_store_stays_none(self) -> None:
        with observed():
            assert self.transport(None)._event_store is None

    def test_a_store_is_what_it_was(self) -> None:
        base: Any = importlib.import_module("mcp.server.streamable_http").EventStore

        class Store(base):  # type: ignore[misc] # the SDK under test decides what it is
            size = 7

            def __bool__(self) -> bool:
                return False

            async def store_event(self, stream_id: str, message: Any, flavour: str = "plain") -> str:
                return f"{stream_id} {flavour}"

            async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
                await send_callback
                return last_event_id

        store = Store()
        with observed():
            proxy = self.transport(store)._event_store
            assert isinstance(proxy, Store)
            assert isinstance(proxy, base)
            assert not proxy
            assert proxy == store
            assert proxy.size == 7
            proxy.size = 8
            assert store.size == 8
            assert asyncio.run(proxy.store_event(stream_id="s", message=None)) == "s plain"
            assert asyncio.run(proxy.store_event("s", None, flavour="hot")) == "s hot"

    def test_what_a_store_raises_comes_through(self) -> None:
        base: Any = importlib.import_module("mcp.server.streamable_http").EventStore

        class Store(base):  # type: ignore[misc] # the SDK under test decides what it is
            async def store_event(self, stream_id: str, message: Any) -> str:
                raise OSError(stream_id)

            async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
                raise LookupError(last_event_id)

        with observed():
            proxy = self.transport(Store())._event_store
            with pytest.raises(OSError, match="s"):
                asyncio.run(proxy.store_event("s", None))
            with pytest.raises(LookupError, match="7"):
                asyncio.run(proxy.replay_events_after("7", None))

    def test_functions_look_as_they_did_and_are_back_afterwards(self) -> None:
        module = importlib.import_module("mcp.server.streamable_http")
        transport, manager = module.StreamableHTTPServerTransport, manager_class()
        names = [
            (transport, "__init__"),
            (transport, "connect"),
            (transport, "terminate"),
            (transport, "handle_request"),
        ]
        names += [(manager, "_handle_stateful_request"), (manager, "_handle_stateless_request")]
        before = [(vars(owner)[name], inspect.signature(getattr(owner, name))) for owner, name in names]
        with observed():
            during = [inspect.signature(getattr(owner, name)) for owner, name in names]
            assert during == [signature for _, signature in before]
            assert inspect.iscoroutinefunction(transport.handle_request)
        assert [vars(owner)[name] for owner, name in names] == [function for function, _ in before]

    def test_a_connection_is_a_context_manager_like_before(self) -> None:
        async def connect() -> None:
            transport = self.transport(None)
            async with transport.connect() as (read, write):
                assert (read, write) == (transport._read_stream, transport._write_stream)
            with pytest.raises(Exception) as raised:  # noqa: PT011 - a group around it, as the SDK's task group has it
                async with self.transport(None).connect():
                    raise ValueError("mine")
            assert "mine" in repr(raised.value)
            async with contextlib.AsyncExitStack() as stack:
                await stack.enter_async_context(self.transport(None).connect())

        with observed():
            asyncio.run(connect())


FAULTS = [
    (Exchange, "head"),
    (Exchange, "wrote"),
    (Exchange, "primed"),
    (Exchange, "ended"),
    (Inbox, "initialized"),
    (Inbox, "called"),
    (Inbox, "listed"),
    (Inbox, "replied"),
    (Inbox, "expects_tools"),
    (Replay, "handed"),
    (Replay, "returned"),
    (ServerWatch, "exchange"),
    (ServerWatch, "session"),
    (Session, "serve"),
    (Session, "stored"),
    (Session, "primed"),
    (Session, "replay"),
    (Session, "registered"),
    (Session, "unregistered"),
    (Session, "end"),
]


@pytest.fixture(scope="module")
def plain() -> list[list[Any]]:
    return transcript(stored_app(), PLAY)


@pytest.mark.parametrize(("owner", "name"), FAULTS, ids=lambda value: getattr(value, "__name__", value))
def test_a_fault_of_ours_changes_nothing(
    owner: type, name: str, monkeypatch: pytest.MonkeyPatch, plain: list[list[Any]]
) -> None:
    if name == "primed" and PROTOCOL < "2025-11-25":
        pytest.skip("before mcp 1.23 there are no priming events")

    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("ours")

    with observed() as seen:
        monkeypatch.setattr(owner, name, fails)
        watched = transcript(stored_app(), PLAY)
        assert {repr(error) for _, error in seen.errors} == {"RuntimeError('ours')"}
        seen.errors.clear()
    assert watched == plain


def test_a_report_that_fails_changes_nothing(plain: list[list[Any]]) -> None:
    class Failing(list[Any]):
        def extend(self, _: Any) -> None:
            raise RuntimeError("ours")

    with observed(facts=Failing()) as seen:
        watched = transcript(stored_app(), PLAY)
        assert seen.errors
        seen.errors.clear()
    assert watched == plain


def test_a_store_that_breaks_down_is_seen_and_costs_what_it_would_cost_anyway() -> None:
    class Breaking(make_store({"ids": "global-int"})):  # type: ignore[misc] # made for the SDK under test
        async def store_event(self, stream_id: str, message: Any) -> str:
            if message is not None and "broken" in repr(message):
                raise OSError("disk full")
            return str(await super().store_event(stream_id, message))

    async def play(seen: Observed) -> None:
        async with playing(high_level_app(event_store=Breaking())) as client:
            await client.play(
                [
                    {"initialize": {"session": "A", "protocol": PROTOCOL}},
                    {"call": {"session": "A", "as": "call", "play": [{"emit": 1, "as": "broken"}], "no_wait": True}},
                ]
            )
            await seen.until(lambda: bool(seen.of(EventsUndelivered)))

    with observed() as seen:
        asyncio.run(play(seen))

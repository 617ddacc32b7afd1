"""What a message costs on its way through the server: a fixed number of our functions, whatever has happened before.

Times say more of a machine than of the code, so function calls are counted. Nothing is parsed on that way.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest

import otel_mcp_resume
from otel_mcp_resume.sdk.server_send import Channels
from otel_mcp_resume.sdk.server_store import ObservedStore
from otel_mcp_resume.sdk.server_transport import _Routing, observe_receive
from otel_mcp_resume.watch.server import Request
from tests.sdk.server_side import Observed, observed
from tests.wire.driven.event_store import make_store

MESSAGES = 200
HOME = otel_mcp_resume.__file__.rpartition("/")[0]
HEAD = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}


def notification() -> Any:
    types = importlib.import_module("mcp.types")
    message = types.JSONRPCNotification(jsonrpc="2.0", method="notifications/message", params={"data": "x"})
    return types.JSONRPCMessage(message) if isinstance(types.JSONRPCMessage, type) else message


class Item:
    def __init__(self) -> None:
        self.message = notification()
        self.metadata = None


class Router:
    async def receive(self) -> Item:
        return Item()


def _fail(error: Exception) -> None:
    raise error


async def through(seen: Observed, *, stored: bool) -> Counter[str]:
    """Sends messages through a live stream, and counts our functions that are called for them."""
    runtime = seen.runtime
    session = seen.watch.session("A", standalone="_GET_stream", is_stored=stored)
    exchange = seen.watch.exchange(Request("GET", session_id="A"))
    session.serve(exchange)

    async def send(_: Any) -> None:
        pass

    channels = Channels(runtime, exchange, None, send, _fail)  # type: ignore[arg-type]
    await channels.send(HEAD)
    session.registered("_GET_stream", exchange)
    store = ObservedStore(make_store({"ids": "global-int"})(), session, runtime, "hook")
    router: Any = Router()
    observe_receive(router, _Routing(session, "_GET_stream", runtime.report).note, _fail)
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(HOME):
            calls[frame.f_code.co_name] += 1

    async def one(number: int) -> None:
        if stored:
            event_id = await store.store_event("_GET_stream", notification())
            body = b"id: %s\r\nevent: message\r\ndata: {}\r\n\r\n" % event_id.encode()
        else:
            await router.receive()
            body = b"event: message\r\ndata: {%d}\r\n\r\n" % number
        await channels.send({"type": "http.response.body", "body": body, "more_body": True})

    await one(-1)
    gc.disable()
    sys.setprofile(count)
    try:
        for number in range(MESSAGES):
            await one(number)
    finally:
        sys.setprofile(None)
        gc.enable()
    assert exchange.events == MESSAGES + 1
    assert not exchange.queue
    return calls


@pytest.mark.parametrize(
    ("stored", "ours"),
    [
        (True, {"observed_store_event", "stored", "observed_send", "wrote"}),
        (False, {"observed_receive", "note", "emitted", "observed_send", "wrote"}),
    ],
)
def test_each_message_passes_each_of_these_once(ours: set[str], *, stored: bool) -> None:
    with observed() as seen:
        calls = asyncio.run(through(seen, stored=stored))
    assert calls == dict.fromkeys(ours, MESSAGES)

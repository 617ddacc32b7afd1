"""What is put into a response is taken out again: nothing that hangs on it waits for the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pytest

from otel_mcp_resume.sdk.http_text import Reading, tap_body, tap_text
from tests.sdk.client_world import HTTP, connected, faults, plugged, resumes, run, served, text_of
from tests.sdk.test_http_tap import own_client

CALLS = 5


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def kept(backend: str, *, watched: bool) -> int:
    """How many event streams of resumed calls are still there when the calls are over."""
    seen: list[ref[Any]] = []

    async def hook(response: Any) -> None:
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            seen.append(ref(response))

    async def play(url: str) -> int:
        async with HTTP.AsyncClient(event_hooks={"response": [hook]}) as client, connected(url, client) as api:
            for _ in range(CALLS):
                assert text_of(await api.call_tool("t", {})) == "done"
            return sum(each() is not None for each in seen[:-1])

    with ExitStack() as stack:
        plugin = stack.enter_context(plugged()) if watched else None
        peer = stack.enter_context(served(*resumes()))
        found: int = run(backend, lambda: play(peer.url))
        assert plugin is None or faults(plugin) == {}
    assert len(seen) >= 2 * CALLS
    return found


@own_client
@pytest.mark.usefixtures("uncollected")
def test_no_response_is_kept_longer_than_without_us() -> None:
    """On asyncio. On trio the SDK's own generators keep nearly all of them."""
    assert kept("asyncio", watched=True) <= kept("asyncio", watched=False)


class Response:
    """As far as it is looked at."""

    async def aiter_text(self) -> Any:
        yield "text"

    async def aclose(self) -> None: ...


def close(response: Any) -> None:
    with pytest.raises(StopIteration):
        response.aclose().send(None)


def tap(response: Any) -> None:
    connection: Any = SimpleNamespace(feed=lambda _: (), closed=True)
    tap_text(response, connection, Reading(lambda _: None, fail, lambda *_, **__: None))


def fail(error: Exception) -> None:
    raise error


def test_a_closed_response_has_its_own_methods_again() -> None:
    response = Response()
    tap(response)
    assert set(vars(response)) == {"aiter_text", "aclose"}
    close(response)
    close(response)
    assert vars(response) == {}


def test_what_others_had_put_there_is_there_again() -> None:
    response, others = Response(), Response()
    vars(response)["aiter_text"] = others.aiter_text
    tap(response)
    close(response)
    assert vars(response) == {"aiter_text": others.aiter_text}


def test_what_others_have_put_over_it_stays() -> None:
    response, others = Response(), Response()
    tap(response)
    vars(response)["aiter_text"] = others.aiter_text
    close(response)
    assert vars(response) == {"aiter_text": others.aiter_text}


def test_a_body_that_was_read_is_learned_from_once_and_leaves_nothing_behind() -> None:
    """What is kept of a response may be pickled."""
    response, learned = HTTP.Response(200, content=b"tools"), list[bytes]()
    before = dict(vars(response))
    tap_body(response, learned.append, fail)
    for _ in range(2):
        with pytest.raises(StopIteration) as over:
            response.aread().send(None)
        assert over.value.value == b"tools"
    assert learned == [b"tools"]
    assert vars(response) == before

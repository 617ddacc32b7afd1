"""An empty 200 to every resumption makes the SDK call itself until the stack is full (python-sdk #2393, #3257).

That it ends in a crash of the client is the SDK's doing. That it ends in the same one, although the full stack may
strike inside of us, is ours.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterator

import anyio
import pytest

from tests.sdk.client_world import RESUMES, Peer, attempts, connected, plugged, run, served
from tests.wire.driven.steps import Json

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not RESUMES, reason="before 1.23 the SDK re-opens no stream of a request"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # what is left when a stack is full
]
ENDLESS: list[Json] = [
    {"when": {"rpc": "tools/call"}, "respond": {"sse": [{"id": 1, "retry": 0, "data": ""}]}},
    {"when": {"method": "GET", "token": "1"}, "respond": {"sse": []}},
]


@contextlib.contextmanager
def a_small_stack(frames: int) -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + frames)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def kinds(error: BaseException) -> list[str]:
    """The types of the leaves of an exception group."""
    return [kind for inner in getattr(error, "exceptions", ()) for kind in kinds(inner)] or [type(error).__name__]


async def call(peer: Peer, frames: int) -> list[str]:
    """How a call ends that is never answered."""
    try:
        async with connected(peer.url) as api:
            with a_small_stack(frames), anyio.move_on_after(20):
                await api.call_tool("t", {})
    except Exception as error:  # noqa: BLE001 - which one it is has to be the same
        return kinds(error)
    return []


@pytest.mark.parametrize("frames", range(200, 212))
def test_a_full_stack_is_the_same_crash(frames: int) -> None:
    """Some frames more or fewer make it strike elsewhere."""
    with served(*ENDLESS) as peer:
        without = run("asyncio", lambda: call(peer, frames))
    with plugged() as plugin, served(*ENDLESS) as peer:
        assert run("asyncio", lambda: call(peer, frames)) == without
        assert without
        assert attempts(plugin)["request unproven reconnect_loop"] > 50

"""With the plugin an application sees what it sees without: results, exceptions, and what goes over the wire."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from tests.sdk.client_world import (
    RESUMES,
    Peer,
    connected,
    counts,
    faults,
    plugged,
    resume,
    resumes,
    run,
    served,
    text_of,
)
from tests.wire.driven.steps import Json

RESUMED: Json = {"method": "GET", "token": "1"}


def call(respond: Json) -> Json:
    return {"when": {"rpc": "tools/call"}, "respond": respond}


def primed(event_id: str) -> Json:
    return call({"sse": [{"id": event_id, "retry": 10, "data": ""}]})


SCENES: dict[str, list[Json]] = {
    "clean": resumes(),
    "an ordinary answer": [],
    "an answer to another request": resumes({"sse": [{"id": 2, "result": "wrong", "to": 999}]}),
    "another session": resumes({"headers": {"Mcp-Session-Id": "S2"}, "sse": [{"id": 1, "result": "wrong"}]}),
    "empty, twice": [{"when": {**RESUMED, "nth": n}, "respond": {"sse": []}} for n in (1, 2)] + resumes(),
    "refused": resumes({"status": 404}),
    "a server error first": [{"when": {**RESUMED, "nth": 1}, "respond": {"status": 503}}, *resumes()],
    "reset in the middle": [
        {"when": {**RESUMED, "nth": 1}, "respond": {"sse": [{"id": 1, "note": "a"}], "end": "reset"}},
        *resumes(),
    ],
    "cut off in the middle of an event": [
        {"when": {**RESUMED, "nth": 1}, "respond": {"sse": [{"id": 1, "note": "a"}], "end": "eof"}},
        *resumes(),
    ],
    "never answered": [call({"sse": [{"comment": "ping"}]})],
    "an error as the answer": resumes(
        {"sse": [{"id": 2, "rpc": {"id": "$call", "error": {"code": -1, "message": "no"}}}]}
    ),
    "no JSON": resumes({"sse": [{"id": 2, "data": "{"}, {"id": 3, "result": "done"}]}),
    "a post that is refused": [call({"status": 400})],
    "a post under a session that is gone": [call({"status": 404})],
    "a post that fails": [call({"status": 500})],
    "a post that is reset": [call({"end": "reset"})],
    "a token of 60 kB": [
        primed("x" * 60_000),
        {"when": {"method": "GET", "token": "x" * 60_000}, "respond": {"sse": [{"result": "done"}]}},
    ],
    "a token that no header can carry": [primed("\x01\x02")],
    "a token beyond ASCII": [primed("ключ")],
    "byte by byte": resumes({"sse": [{"comment": "é\u2028"}, {"id": 2, "result": "done"}], "split": 1}),
    "compressed": resumes({"sse": [{"id": 2, "note": "a"}, {"id": 3, "result": "done"}], "gzip": True}),
    "no event stream": resumes({"status": 200, "type": "text/html"}),
    "redirected away": resumes({"status": 302, "headers": {"Location": "http://127.0.0.1:9/"}}),
}
WITHOUT_RESUMPTION = [
    "an ordinary answer",
    "never answered",
    "clean",
    "a post that is refused",
    "a post under a session that is gone",
    "a post that fails",
    "a post that is reset",
]
"""What the SDK can meet before 1.23, where it re-opens no stream of a request."""


def what_happened(error: BaseException) -> list[str]:
    """The leaves of an exception group, without what differs from run to run."""
    inner = getattr(error, "exceptions", None)
    if inner is None:
        return [f"{type(error).__name__}: {error}"]
    return sorted(leaf for each in inner for leaf in what_happened(each))


async def one_call(peer: Peer, limit: float) -> list[str]:
    """A call, and another one to see that the session goes on. `limit` is what each gets, in seconds."""
    seen: list[str] = []

    async def message(text: Any) -> None:
        seen.append(f"{type(text).__name__}")

    try:
        async with connected(peer.url, message_handler=message) as api:
            for _ in range(2):
                with anyio.move_on_after(limit):
                    try:
                        seen.append(text_of(await api.call_tool("t", {})))
                    except Exception as error:  # noqa: BLE001 - whatever it is, it has to be the same
                        seen += what_happened(error)
    except Exception as error:  # noqa: BLE001 - see above
        seen += what_happened(error)
    return seen


def sent(peer: Peer) -> list[tuple[str, str, list[str], Json]]:
    """What the peer saw. When the standalone stream is tried again, and how the session ends, is a matter of time."""
    return [
        (request.method, request.path, sorted(f"{key}: {value}" for key, value in request.headers.items()), request.rpc)
        for request in peer.requests
        if request.method == "POST" or "last-event-id" in request.headers
    ]


def host_free(text: str, peer: Peer) -> str:
    return text.replace(peer.url.split("/")[2], "HOST")


@contextlib.contextmanager
def maybe_plugged(*, plugin: bool) -> Iterator[Any]:
    with plugged() if plugin else contextlib.nullcontext() as kit:
        yield kit


@pytest.mark.parametrize("scene", SCENES if RESUMES else WITHOUT_RESUMPTION)
def test_with_and_without(scene: str) -> None:
    without, within = results_of(scene, 1.0)
    if without != within:  # the machine may have had no time for a call: with more, they have to be the same
        without, within = results_of(scene, 8.0)
    assert without == within


def results_of(scene: str, limit: float, backend: str = "asyncio") -> list[tuple[list[str], str]]:
    """What the application gets and what the peer sees, without the plugin and with it."""
    found: list[tuple[list[str], str]] = []
    for plugin in (False, True):
        with maybe_plugged(plugin=plugin) as kit, served(*SCENES[scene]) as peer:
            lines = run(backend, lambda: one_call(peer, limit))
            found.append(([host_free(line, peer) for line in lines], host_free(str(sent(peer)), peer)))
            if kit is not None:
                assert faults(kit) == {}
                assert backend != "asyncio" or counts(kit, "mcp_resume_open_streams", "stream") == {}
    return found


@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
@pytest.mark.parametrize(
    "scene", ["clean", "an answer to another request", "reset in the middle"][: 3 if RESUMES else 1]
)
def test_under_trio_too(scene: str) -> None:
    without, within = (got for got, _ in results_of(scene, 1.0, "trio"))
    if without != within:  # see above
        without, within = (got for got, _ in results_of(scene, 8.0, "trio"))
    assert without == within


def test_a_resumption_from_a_kept_token_that_ends_in_an_exception() -> None:
    """The 1.x client raises what it meets there, out of its task group; the attempt has its verdict all the same."""

    async def play() -> list[str]:
        try:
            async with connected(peer.url) as api:
                with anyio.move_on_after(1.0):
                    await resume(api, "1")
        except Exception as error:  # noqa: BLE001 - that it is the same is all that counts
            return [line.split(":")[0] for line in what_happened(error)]
        return []

    redirect: Json = {"status": 307, "headers": {"Location": "http://127.0.0.1:9/"}}
    results: list[list[str]] = []
    for plugin in (False, True):
        with maybe_plugged(plugin=plugin) as kit, served(*resumes(redirect)) as peer:
            results.append(run("asyncio", play))
            if kit is not None:
                told = counts(kit, "mcp_resume_attempts_total", "outcome", "reason")
                assert told in ({"failed not_event_stream": 1}, {"failed network_error": 1}), "older ones follow it"
                assert faults(kit) == {}
    assert results[0] == results[1]

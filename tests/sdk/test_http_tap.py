"""HTTP clients as applications configure them: hooks that raise, authentication, redirects, other requests beside."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, Protocol

import anyio
import pytest

from tests.sdk.client_world import (
    BACKENDS,
    HTTP,
    TAKES_CLIENT,
    attempts,
    connected,
    counts,
    faults,
    plugged,
    resumes,
    run,
    served,
    text_of,
)
from tests.wire.driven.steps import Json

pytestmark = pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")  # trio tells: the SDK closes none
own_client = pytest.mark.skipif(
    not TAKES_CLIENT, reason="before 1.24 the SDK takes no HTTP client of the application's own"
)
each_loop = pytest.mark.parametrize("backend", BACKENDS)


class HasUrl(Protocol):
    @property
    def url(self) -> str: ...


def call_over(backend: str, peer: HasUrl, limit: float = 20.0, **http: Any) -> str | None:
    """What a call over an HTTP client of the application's own gives within so many seconds; None for an error."""

    async def play() -> str | None:
        async with HTTP.AsyncClient(**http) as client, connected(peer.url, client) as api:
            with anyio.move_on_after(limit), suppress(Exception):
                return text_of(await api.call_tool("t", {}))
            return None

    text: str | None = run(backend, play)
    return text


class Surprise(Exception):  # noqa: N818 - it is none of HTTP's errors
    """What an application raises in a hook."""


def raised_by_status(response: Any) -> Exception:
    error: Exception = HTTP.HTTPStatusError("mine", request=response.request, response=response)
    return error


def raised_by_surprise(_: Any) -> Exception:
    return Surprise("mine")


@own_client
@each_loop
@pytest.mark.parametrize(
    ("make", "verdict"),
    [(raised_by_status, "request unproven no_replay"), (raised_by_surprise, "request failed network_error")],
)
def test_a_response_hook_that_raises_on_an_event_stream(backend: str, make: Any, verdict: str) -> None:
    """The SDK tries again. What the hook threw away is closed, whatever it looked like."""
    raised: list[Exception] = []

    async def hook(response: Any) -> None:
        if "last-event-id" in response.request.headers and not raised:
            raised.append(make(response))
            raise raised[0]

    with plugged() as plugin, served(*resumes()) as peer:
        assert call_over(backend, peer, event_hooks={"response": [hook]}) == "done"
        assert attempts(plugin) == {verdict: 1, "request proven replayed_event": 1}
        assert counts(plugin, "mcp_resume_open_streams", "stream") == {}
        assert faults(plugin) == {}


@own_client
@each_loop
def test_a_response_hook_that_turns_a_refusal_into_an_exception(backend: str) -> None:
    async def hook(response: Any) -> None:
        if "last-event-id" in response.request.headers:
            response.raise_for_status()

    with plugged() as plugin, served(*resumes({"status": 404})) as peer:
        call_over(backend, peer, limit=1.0, event_hooks={"response": [hook]})
        assert attempts(plugin)["request rejected session_not_found"] >= 1
        assert faults(plugin) == {}


class TokenAuth(HTTP.Auth):  # type: ignore[misc] # whichever HTTP library it is
    """Fetches a token over the same client, in the middle of a request, and again when it is refused."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client: Any = None

    async def async_auth_flow(self, request: Any) -> AsyncGenerator[Any, Any]:
        await self._authorize(request)
        response = yield request
        if response.status_code == 401:
            await self._authorize(request)
            yield request

    async def _authorize(self, request: Any) -> None:
        accept = {"accept": "text/event-stream"}
        token = await self.client.get(self.url, headers=accept, auth=HTTP.Auth())
        request.headers["authorization"] = f"Bearer {token.status_code}"


@own_client
@each_loop
def test_authentication_that_makes_requests_of_its_own(backend: str) -> None:
    refused: Json = {"when": {"method": "GET", "token": "1", "nth": 1}, "respond": {"status": 401}}
    tokens: Json = {"when": {"path": "/token"}, "respond": {"status": 404}}

    async def play() -> str:
        auth = TokenAuth(peer.url.replace("/mcp", "/token"))
        async with HTTP.AsyncClient(auth=auth) as client:
            auth.client = client
            async with connected(peer.url, client) as api:
                return text_of(await api.call_tool("t", {}))

    with plugged() as plugin, served(tokens, refused, *resumes()) as peer:
        assert run(backend, play) == "done"
        assert peer.seen(path="/token") >= 5
        assert peer.seen(method="GET", token="1") == 2
        assert attempts(plugin) == {"request proven replayed_event": 1}
        assert counts(plugin, "mcp_resume_violations_total", "rule") == {}
        assert faults(plugin) == {}


def redirected(location: str) -> list[Json]:
    """A resumption that is sent elsewhere."""
    there: Json = {
        "when": {"method": "GET", "path": "/there", "token": "1"},
        "respond": {"sse": [{"id": 2, "result": "done"}]},
    }
    return [there, *resumes({"status": 307, "headers": {"Location": location}})]


@own_client
@each_loop
def test_a_client_that_follows_redirects(backend: str) -> None:
    with plugged() as plugin, served(*redirected("/there")) as peer:
        assert call_over(backend, peer, follow_redirects=True) == "done"
        assert attempts(plugin) == {"request proven replayed_event": 1}
        assert counts(plugin, "mcp_resume_open_streams", "stream") == {}
        assert faults(plugin) == {}


@own_client
@each_loop
def test_a_redirect_that_nobody_follows(backend: str) -> None:
    with plugged() as plugin, served(*redirected("http://127.0.0.1:9/there")) as peer:
        call_over(backend, peer, limit=1.5)
        told = attempts(plugin)
        assert told.pop("request failed not_event_stream") == peer.seen(method="GET", token="1")
        assert set(told) <= {"request abandoned retries_exhausted"}
        assert faults(plugin) == {}


@own_client
def test_requests_beside_the_exchange_are_none_of_ours() -> None:
    results: list[str] = []

    async def play() -> None:
        async with HTTP.AsyncClient() as client, connected(peer.url, client) as api, anyio.create_task_group() as tasks:
            headers = {"accept": "text/event-stream", "last-event-id": "1", "mcp-session-id": "S9"}
            for _ in range(5):
                tasks.start_soon(client.get, peer.url.replace("/mcp", "/other"))
            response = await client.get(peer.url.replace("/mcp", "/other"), headers=headers)
            assert response.status_code == 404
            results.append(text_of(await api.call_tool("t", {})))

    other: Json = {"when": {"path": "/other"}, "respond": {"status": 404}}
    with plugged() as plugin, served(other, *resumes()) as peer:
        run("asyncio", play)
        assert results == ["done"]
        assert attempts(plugin) == {"request proven replayed_event": 1}

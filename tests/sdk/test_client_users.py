"""A gateway: one process, clients of many users to one server. Whose call was made twice?"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import pytest

from tests.sdk.client_world import BACKENDS, HTTP, connected, counts, faults, plugged, run, served, text_of
from tests.sdk.test_http_tap import call_over, own_client
from tests.wire.driven.steps import Json

CUT: Json = {"when": {"rpc": "tools/call", "nth": 1}, "respond": {"sse": [{"note": "a"}], "end": "eof"}}
"""The first call has no answer, and no token to go on with."""
ANN, BOB = "Bearer ann", "Bearer bob"


class Late(HTTP.Auth):  # type: ignore[misc] # whichever HTTP library it is
    """Adds the credential where OAuth does: when the request is on its way already."""

    def __init__(self, credential: str, before: str | None = None) -> None:
        """`before` is what is sent until the first call, when it is renewed."""
        self.credential = credential
        self.before = before or credential

    def auth_flow(self, request: Any) -> Any:
        is_call = b"tools/call" in request.content
        request.headers["authorization"] = self.credential if is_call else self.before
        yield request


class At(NamedTuple):
    """A server behind the same address."""

    url: str


def by_header(credential: str) -> dict[str, Any]:
    return {"headers": {"authorization": credential}}


def by_key(credential: str) -> dict[str, Any]:
    return {"headers": {"x-api-key": credential}}


def by_auth(credential: str) -> dict[str, Any]:
    return {"auth": Late(credential)}


@own_client
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("authorised", [by_header, by_key, by_auth])
@pytest.mark.parametrize(("second", "duplicates"), [(ANN, {"duplicate_call": 1}), (BOB, {})])
def test_the_same_call_of_another_user_repeats_nothing(
    backend: str, authorised: Any, second: str, duplicates: dict[str, float]
) -> None:
    with plugged() as plugin, served(CUT) as peer:
        assert call_over(backend, peer, limit=1.0, **authorised(ANN)) is None
        assert call_over(backend, peer, **authorised(second)) == "ok"
        assert counts(plugin, "mcp_resume_violations_total", "rule") == duplicates
        assert faults(plugin) == {}


@own_client
@pytest.mark.parametrize("cut", [CUT, {"when": {"rpc": "tools/call", "nth": 1}, "respond": {"end": "eof"}}])
def test_a_token_that_was_renewed_before_the_call_is_the_one_that_counts(cut: Json) -> None:
    """Transports live for hours, tokens do not."""
    with plugged() as plugin, served(cut) as peer:
        with suppress(Exception):  # where no response begins, the SDK's session ends with it
            call_over("asyncio", peer, limit=1.0, auth=Late(ANN, before="Bearer of yesterday"))
        assert call_over("asyncio", peer, **by_auth(ANN)) == "ok"
        assert counts(plugin, "mcp_resume_violations_total", "rule") == {"duplicate_call": 1}
        assert faults(plugin) == {}


@own_client
@pytest.mark.parametrize(("second", "duplicates"), [(ANN, {"duplicate_call": 1}), (BOB, {})])
def test_a_session_may_be_handed_from_user_to_user(second: str, duplicates: dict[str, float]) -> None:
    """It was opened for one of them; the calls before tell whose this one is."""

    async def play(url: str) -> None:
        opened_by = BOB if second == ANN else ANN
        async with HTTP.AsyncClient(auth=Late(second, before=opened_by)) as http, connected(url, http) as api:
            assert text_of(await api.call_tool("another", {})) == "ok"
            assert text_of(await api.call_tool("t", {})) == "ok"

    with plugged() as plugin, served(CUT) as peer:
        assert call_over("asyncio", peer, limit=1.0, **by_auth(ANN)) is None
        run("asyncio", partial(play, peer.url))
        assert counts(plugin, "mcp_resume_violations_total", "rule") == duplicates
        assert faults(plugin) == {}


@own_client
@pytest.mark.parametrize(("second", "duplicates"), [(ANN, {"duplicate_call": 1}), (BOB, {})])
@pytest.mark.parametrize("name", ["authorization", "x-api-key"])
def test_a_client_may_be_given_the_headers_of_another_user(
    name: str, second: str, duplicates: dict[str, float]
) -> None:
    """The call says itself whose it is."""

    async def play(url: str) -> None:
        headers = {name: BOB if second == ANN else ANN}
        async with HTTP.AsyncClient(headers=headers) as http, connected(url, http) as api:
            http.headers[name] = second
            assert text_of(await api.call_tool("t", {})) == "ok"

    with plugged() as plugin, served(CUT) as peer:
        assert call_over("asyncio", peer, limit=1.0, headers={name: ANN}) is None
        run("asyncio", partial(play, peer.url))
        assert counts(plugin, "mcp_resume_violations_total", "rule") == duplicates
        assert faults(plugin) == {}


@own_client
@pytest.mark.parametrize(
    ("path", "duplicates"), [("/one", {"duplicate_call": 1}), ("/one/", {"duplicate_call": 1}), ("/two", {})]
)
def test_the_same_call_to_another_server_of_the_same_origin_repeats_nothing(
    path: str, duplicates: dict[str, float]
) -> None:
    with plugged() as plugin, served(CUT) as peer:
        assert call_over("asyncio", At(peer.url + "/one"), limit=1.0) is None
        assert call_over("asyncio", At(peer.url + path)) == "ok"
        assert counts(plugin, "mcp_resume_violations_total", "rule") == duplicates
        assert faults(plugin) == {}

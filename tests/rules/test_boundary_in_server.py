"""The boundary in a real server, and the real SDK client, which is cut, comes back, and has lost nothing."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import urllib.error
import urllib.request
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.rules.own_server import OwnServer, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

MCP = tuple(int(part) for part in version("mcp").split(".")[:2])
needs_a_client_that_resumes = pytest.mark.skipif(
    MCP < (1, 23), reason="SDK clients before 1.23 never resume a stream by themselves"
)
LIMIT = 60
"""Seconds, for a whole test; what is waited for takes a fraction of one."""


class Application:
    """What the user of the SDK client sees."""

    def __init__(self) -> None:
        self.notes: list[object] = []
        self.questions: list[str] = []

    async def on_note(self, params: Any) -> None:
        self.notes.append(params.data)

    async def on_question(self, context: object, params: Any) -> Any:
        self.questions.append(params.message)
        return importlib.import_module("mcp.types").ElicitResult(action="accept", content={"yes": True})

    @staticmethod
    async def until(condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - it is about the state of client and server alike
            await asyncio.sleep(0.005)

    @contextlib.asynccontextmanager
    async def connected(self, url: str) -> AsyncIterator[Any]:
        module = importlib.import_module("mcp.client.streamable_http")
        connect = getattr(module, "streamable_http_client", None) or module.streamablehttp_client
        session_class = importlib.import_module("mcp").ClientSession
        async with (
            connect(url) as streams,
            session_class(
                streams[0], streams[1], logging_callback=self.on_note, elicitation_callback=self.on_question
            ) as session,
        ):
            await session.initialize()
            yield session


def played(server: OwnServer, play: Callable[[Any, Application], Any]) -> Application:
    """Runs `play` with a session on the server."""

    async def run() -> Application:
        application = Application()
        with anyio.fail_after(LIMIT):
            async with served(server) as url, application.connected(url) as session:
                await play(session, application)
        return application

    return asyncio.run(run())


@needs_a_client_that_resumes
@pytest.mark.parametrize(
    "cuts",
    [
        [(0, "reset")],
        [(1, "close"), (0, "close"), (2, "close"), (1, "close")],
        [(3, "reset"), (4, "close"), (1, "close")],
        [(10, "close")],
        [(10, "reset")],
    ],
)
def test_a_call_that_is_cut_gets_every_event_once(cuts: list[tuple[int, str]]) -> None:
    async def play(session: Any, application: Application) -> None:
        result = await session.call_tool("count", {"to": 10})
        assert result.content[0].text == "10"

    server = OwnServer()
    server.cuts["request"].extend(cuts)
    application = played(server, play)
    assert application.notes == list(range(10))
    assert server.gets.count("stream") == len(cuts)


@needs_a_client_that_resumes
@pytest.mark.parametrize("cuts", [[(3, "close")], [(3, "reset")], [(4, "close")], [(2, "reset"), (1, "close")]])
def test_a_question_of_a_call_that_is_cut_around_it_is_asked_once(cuts: list[tuple[int, str]]) -> None:
    """It is the fourth event of the stream: not yet written at the cut, or just written and not yet answered."""

    async def play(session: Any, application: Application) -> None:
        result = await session.call_tool("count", {"to": 6, "ask_at": 3})
        assert result.content[0].text == "6"

    server = OwnServer()
    server.cuts["request"].extend(cuts)
    application = played(server, play)
    assert application.notes == list(range(6))
    assert application.questions == ["go on?"]
    assert len(server.answers) == 1


@needs_a_client_that_resumes
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_standalone_stream_that_is_cut_brings_every_event_and_question_once(how: str) -> None:
    async def play(session: Any, application: Application) -> None:
        await application.until(lambda: server.standalone is not None)
        for n in range(30):
            server.tell(n)
            await asyncio.sleep(0.002)
        await application.until(lambda: len(application.notes) == 30 and len(application.questions) == 3)
        await application.until(lambda: len(server.answers) == 3)

    server = OwnServer()
    server.cuts["standalone"].extend([(4, how), (0, "close"), (5, "close"), (1, "close"), (9, "close")])
    server.asks_when_cut.extend(["first", "second", "third"])
    application = played(server, play)
    assert application.notes == list(range(30))
    assert sorted(application.questions) == ["first", "second", "third"]
    assert server.gets == ["session", *["stream"] * 5]


@needs_a_client_that_resumes
def test_a_client_without_a_token_gets_the_unanswered_question_and_nothing_of_the_past() -> None:
    async def play(session: Any, application: Application) -> None:
        await application.until(lambda: server.gets.count("session") == 2)
        await application.until(lambda: len(server.answers) == 2)
        server.tell("live")
        await application.until(lambda: "live" in application.notes)

    server = OwnServer()
    server.primes = False
    server.cuts["standalone"].append((0, "close"))  # the client has seen no id, so it has nothing to present
    server.asks_when_cut.extend(["while nobody listens"])
    server.asks_at_start.extend(["before anybody listens"])
    application = played(server, play)
    assert application.notes == ["live"]
    assert sorted(application.questions) == ["before anybody listens", "while nobody listens"]
    assert server.gets == ["session", "session"]


def test_what_is_refused_is_refused_distinguishably() -> None:
    def get(url: str, **headers: str) -> tuple[int, str, str]:
        request = urllib.request.Request(
            url, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
        try:
            with urllib.request.urlopen(request, timeout=LIMIT):
                raise AssertionError("it was served")
        except urllib.error.HTTPError as error:
            with error:
                body = json.load(error)
                return error.code, body["error"]["data"]["problem"], body["error"]["message"]

    async def play(session: Any, application: Application) -> None:
        await application.until(lambda: server.standalone is not None)
        mine = server.session_id
        server.log.register_session("other")
        foreign = server.log.append("other", "a", {})
        answers = [
            await asyncio.to_thread(get, server.url, **headers)
            for headers in (
                {},
                {"last_event_id": foreign},
                {"mcp_session_id": "never", "last_event_id": foreign},
                {"mcp_session_id": mine, "last_event_id": foreign},
                {"mcp_session_id": mine, "last_event_id": "_GET_stream_13"},
            )
        ]
        assert [(status, problem) for status, problem, _ in answers] == [
            (400, "no_session"),
            (400, "orphan_token"),
            (404, "unknown_session"),
            (400, "foreign_session_token"),
            (400, "unknown_token"),
        ]
        assert not any(foreign in message or mine in message for _, _, message in answers)

    server = OwnServer()
    played(server, play)

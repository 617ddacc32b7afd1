"""The scenes. Each is played with every pair that can play it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.peers.stage import Play, Stage

__all__ = ["SCENES", "Scene"]

KINDS = ("python", "fastmcp", "sdk1", "sdk2")
STATELESS = ("python-2026", "sdk2-2026")
"""The generation without sessions, which is a peer of its own here: it shares no scene with the others."""
CLOSE_STANDALONE = ("python", "sdk1", "sdk2")
"""Servers that offer their tools to close the standalone stream. FastMCP offers only a request's."""


@dataclass(frozen=True)
class Scene:
    """A play, and the event store that its server keeps."""

    title: str
    play: Play
    store: str | None
    whole: frozenset[str]
    """What the application hears and gets where nothing is lost."""
    proof_timeout: float = 20.0
    servers: tuple[str, ...] = KINDS
    """Those that can play it."""

    def lost(self, application: Iterable[str]) -> set[str]:
        """What did not reach the application."""
        return set(self.whole - set(application))


async def healthy(stage: Stage) -> None:
    await stage.stream("GET")
    await stage.call("count")
    await stage.call("announce")
    await stage.call("announce")
    await stage.hears("news 2")
    await stage.call("count")


async def request_cut(stage: Stage) -> None:
    async with stage.calling("wait") as call:
        await stage.hears("before")
        await stage.cut(await stage.stream("POST", "tools/call wait"))
        await stage.come_back()
        await stage.call("release")
        stage.proxy.let_gets_pass()
        await call


async def standalone_cut(stage: Stage) -> None:
    await stage.stream("GET")
    await stage.call("announce")
    await stage.hears("news 1")
    await stage.cut(await stage.stream("GET"))
    await stage.come_back()
    await stage.call("announce")
    await stage.call("announce")
    stage.proxy.let_gets_pass()
    await stage.hears("news 3")


async def polled_request(stage: Stage) -> None:
    async with stage.calling("poll") as call:
        await stage.hears("before")
        await stage.until(lambda: any(each.is_stream for each in stage.proxy.log.resumptions()))
        await stage.call("release")
        await call


async def polled_standalone(stage: Stage) -> None:
    await stage.stream("GET")
    await stage.call("announce")
    await stage.hears("news 1")
    await stage.call("close_standalone")
    await stage.until(lambda: any(each.is_stream for each in stage.proxy.log.resumptions()))
    await stage.call("announce")
    await stage.hears("news 2")


async def standalone_tried(stage: Stage) -> None:
    """Whether the message of the time away comes is the server's affair."""
    await stage.stream("GET")
    await stage.call("announce")
    await stage.hears("news 1")
    await stage.cut(await stage.stream("GET"))
    await stage.come_back()
    await stage.call("announce")
    await stage.try_to_resume()


async def events_forgotten(stage: Stage) -> None:
    """The session lives, and its store knows the token no more."""
    await stage.stream("GET")
    await stage.call("announce")
    await stage.hears("news 1")
    await stage.cut(await stage.stream("GET"))
    await stage.come_back()
    await stage.call("announce")
    await stage.call("forget_events")
    await stage.try_to_resume()


async def answer_forgotten(stage: Stage) -> None:
    """The same, and what was lost is the answer to a call."""
    async with stage.calling("wait"):
        await stage.hears("before")
        await stage.cut(await stage.stream("POST", "tools/call wait"))
        await stage.come_back()
        await stage.call("release")
        await stage.call("forget_events")
        await stage.try_to_resume()


async def answer_without_store(stage: Stage) -> None:
    async with stage.calling("wait"):
        await stage.hears("before")
        await stage.cut(await stage.stream("POST", "tools/call wait"))
        await stage.call("release")
        await stage.verdicts()
        await stage.until(lambda: not stage.server_is_watched or stage.said.undelivered().total() == 2)


async def session_gone(stage: Stage) -> None:
    await stage.stream("GET")
    await stage.call("announce")
    await stage.hears("news 1")
    await stage.cut(await stage.stream("GET"))
    await stage.come_back()
    await stage.restart_server()
    await stage.try_to_resume()


async def session_gone_and_used(stage: Stage) -> None:
    """The application does not notice, and calls."""
    await session_gone(stage)
    await stage.call("count")


async def stateless_healthy(stage: Stage) -> None:
    await stage.call("count")
    await stage.client.listen()
    await stage.call("announce")
    await stage.hears("tools changed")
    await stage.client.unlisten()
    await stage.call("count")


async def listen_cut(stage: Stage) -> None:
    """The application listens again, as it has to."""
    await stage.client.listen()
    await stage.cut(await stage.stream("POST", "subscriptions/listen"))
    await stage.client.listen()
    await stage.call("announce")
    await stage.hears("tools changed")
    await stage.client.unlisten()


CALL = frozenset({"before", "after", "wait: done"})
POLL = frozenset({"before", "after", "poll: done"})
NEWS = frozenset({"news 1", "news 2"})
CHANGED = frozenset({"tools changed"})
SHORT = 4.0
"""Seconds, where a server may leave a stream open and empty, so that the proof has to run out."""

SCENES = {
    "healthy": Scene("nothing happens", healthy, "ordered", NEWS | {"count 1", "count 2", "count 3"}),
    "request_cut": Scene("a call's stream is cut and resumed", request_cut, "ordered", CALL),
    "request_cut_example": Scene("the same, with the store of the SDK's example", request_cut, "example", CALL),
    "standalone_cut": Scene(
        "the standalone stream is cut; two messages meanwhile", standalone_cut, "ordered", NEWS | {"news 3"}
    ),
    "standalone_cut_example": Scene(
        "the same with one message, and the store of the SDK's example", standalone_tried, "example", NEWS, SHORT
    ),
    "polled_request": Scene("the server closes a call's stream and answers later", polled_request, "ordered", POLL),
    "polled_standalone": Scene(
        "the server closes the standalone stream", polled_standalone, "ordered", NEWS, servers=CLOSE_STANDALONE
    ),
    "events_forgotten": Scene("the store knows the token no more", events_forgotten, "ordered", NEWS, SHORT),
    "token_checked": Scene(
        "the same, and the store says so when asked", events_forgotten, "checked", NEWS, servers=("sdk1", "sdk2")
    ),
    "answer_forgotten": Scene("a call's answer is lost with the store", answer_forgotten, "ordered", CALL, SHORT),
    "standalone_without_store": Scene(
        "the standalone stream is cut, and nothing is kept", standalone_tried, None, NEWS, SHORT
    ),
    "answer_without_store": Scene("a call's stream is cut, and nothing is kept", answer_without_store, None, CALL),
    "session_gone": Scene("a new instance answers, which does not know the session", session_gone, "ordered", NEWS),
    "stateless_healthy": Scene(
        "calls, and a subscription", stateless_healthy, None, CHANGED | {"count: done"}, servers=STATELESS
    ),
    "listen_cut": Scene("a subscription is cut and made again", listen_cut, None, CHANGED, servers=STATELESS),
    "session_gone_and_used": Scene(
        "the same, and the application calls on", session_gone_and_used, "ordered", NEWS | {"count: done"}
    ),
}

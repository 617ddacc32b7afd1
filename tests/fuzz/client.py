"""A client whose server is hostile: the real hooks, around an HTTP library that brings what the corpus says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from otel_mcp_resume.plugin import Plugin
from otel_mcp_resume.rules.terms import Generation, Stream
from otel_mcp_resume.sdk.exchange import EXCHANGE, Exchange
from otel_mcp_resume.sdk.http_tap import HttpTap
from otel_mcp_resume.watch.client_stream import ClientStream
from otel_mcp_resume.watch.transport import ClientTransport
from tests.fuzz.corpus import Corpus, without_content_in_ids
from tests.sdk.client_world import HTTP

__all__ = ["HostileServer"]

METHODS = ("tools/call", "tools/list", "prompts/get", None)


class BrokenError(Exception):
    """What the network does, as the application would see it."""


@dataclass
class Pieces(HTTP.AsyncByteStream):  # type: ignore[misc] # the library that the SDK speaks through
    pieces: list[bytes]
    breaks: bool = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece
        if self.breaks:
            raise BrokenError


@dataclass
class HostileServer:
    """Answers as it likes; counts its answers."""

    plugin: Plugin
    corpus: Corpus
    answers: int = 0
    _open: list[tuple[ClientTransport, ClientStream | None]] = field(default_factory=list[Any])

    def __post_init__(self) -> None:
        self._send = HttpTap(self.plugin.runtime, "AsyncClient.send").wrapper()
        self._http = SimpleNamespace()

    async def conversation(self) -> None:
        """One client: a few streams of any kind, each opened and re-opened, and posts beside them."""
        pick, runtime = self.corpus.random, self.plugin.runtime
        transport = runtime.client.transport(f"https://127.0.0.1:1/{pick.randrange(4)}")
        transport.generation = pick.choice(list(Generation))
        for _ in range(pick.randrange(1, 4)):
            kind = pick.choice((*Stream, None))
            method = pick.choice(METHODS)
            if kind is Stream.LISTEN:
                stream = transport.listen(self.corpus.name(), {"notifications": {}})
            elif kind is None:
                stream = None
            else:
                stream = transport.stream(kind, method=method, request_id=pick.choice((None, "1", self.corpus.name())))
            call = (self.corpus.name(), {"a": 1}) if method == "tools/call" else None
            exchange = Exchange(transport, self._http, stream, method=method, call=call)
            for number in range(pick.randrange(1, 4)):
                await self._answer(exchange, "GET" if number else pick.choice(("GET", "POST")))
            if stream is not None:
                runtime.report(stream.given_up() if pick.random() < 0.3 else ())
                transport.finished(stream)
        runtime.report(transport.closed())

    async def _answer(self, exchange: Exchange, method: str) -> None:
        pick = self.corpus.random
        asked = self.corpus.headers("Mcp-Session-Id", "Last-Event-ID", "Mcp-Protocol-Version")
        request = HTTP.Request(
            method, "https://127.0.0.1:1/mcp?session_id=1", headers=[(b"accept", b"text/event-stream"), *asked]
        )
        token = EXCHANGE.set(exchange)
        self.answers += 1
        try:
            response = await self._send(self._wrapped, self._http, (request,), {})
            for _ in range(1):
                if "event-stream" in response.headers.get("content-type", ""):
                    async for _text in response.aiter_text():
                        if pick.random() < 0.02:
                            break
                else:
                    await response.aread()
            await response.aclose()
        except (BrokenError, HTTP.HTTPError, HTTP.StreamError, UnicodeError):
            pass  # the network's and the library's own
        finally:
            EXCHANGE.reset(token)

    async def _wrapped(self, request: Any) -> Any:
        pick = self.corpus.random
        if pick.random() < 0.05:
            raise pick.choice((BrokenError(), HTTP.ConnectError("no"), HTTP.ReadTimeout("no")))
        body = self.corpus.stream().encode("utf-8", "replace")
        if pick.random() < 0.1:
            body = bytes(byte ^ (pick.random() < 0.02) for byte in body)
        body = without_content_in_ids(body)
        at = sorted(pick.randrange(len(body) + 1) for _ in range(pick.choice((0, 0, 1, 3))))
        pieces = [body[i:j] for i, j in zip([0, *at], [*at, len(body)], strict=True)]
        kind = pick.choice(
            (b"text/event-stream", b"text/event-stream; charset=utf-8", b" TEXT/EVENT-STREAM", b"application/json", b"")
        )
        return HTTP.Response(
            pick.choice((200, 200, 200, 200, 202, 307, 400, 401, 404, 405, 409, 418, 500, 503, 999)),
            headers=[(b"content-type", kind), *self.corpus.headers("mcp-session-id", "location")],
            stream=Pieces(pieces, breaks=pick.random() < 0.2),
            request=request,
        )

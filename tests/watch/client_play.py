"""A client played by hand against the watch: literal heads and text, a clock that stands still, deadlines that obey."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from otel_mcp_resume.rules.terms import Disconnect, Generation, Stream
from otel_mcp_resume.watch.attempt import Attempt
from otel_mcp_resume.watch.client import ClientTransport, ClientWatch
from otel_mcp_resume.watch.client_stream import ClientStream
from otel_mcp_resume.watch.connection import Connection
from otel_mcp_resume.watch.deadlines import Deadlines, Expirable
from otel_mcp_resume.watch.exchange import RequestHead, ResponseHead
from otel_mcp_resume.watch.facts import AttemptSettled, DuplicateEvent, Fact, StreamClosed, Violated

__all__ = ["FIRST", "LATER", "URL", "Limits", "Line", "Play", "message", "response"]

URL = "https://mcp.example:8443/mcp"
FIRST = "2025-06-18"
LATER = "2026-07-28"
F = TypeVar("F")


@dataclass
class Limits:
    max_streams: int = 100
    max_events: int = 1000


def _raise(_hook: str, error: Exception) -> None:
    raise error


class ByHand(Deadlines):
    """Deadlines that pass when the test says so."""

    def __init__(self) -> None:
        super().__init__(20.0, _raise)
        self.open: dict[int, Expirable] = {}

    def add(self, item: Expirable) -> None:
        self.open[id(item)] = item

    def forget(self, item: Expirable) -> None:
        self.open.pop(id(item), None)

    def pass_all(self) -> None:
        while self.open:
            self.open.popitem()[1].expire()


class Play:
    """One process with clients in it, and everything that it told."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.now = 1000.0
        self.facts: list[Fact] = []
        self.counted: Counter[tuple[Generation, Stream]] = Counter()
        self.deadlines = ByHand()
        self.watch = ClientWatch(
            emit=self.tell,
            events=self._events,
            deadlines=self.deadlines,
            limits=limits or Limits(),
            clock=lambda: self.now,
        )

    def _events(self, generation: Generation, stream: Stream) -> Callable[[], None]:
        def increment() -> None:
            self.counted[generation, stream] += 1

        return increment

    def tell(self, facts: Iterable[Fact]) -> None:
        self.facts += facts

    def of(self, kind: type[F]) -> list[F]:
        return [fact for fact in self.facts if isinstance(fact, kind)]

    @property
    def verdicts(self) -> list[str]:
        return [f"{fact.outcome}: {fact.reason}" for fact in self.of(AttemptSettled)]

    @property
    def violations(self) -> list[str]:
        return [str(fact.rule) for fact in self.of(Violated)]

    @property
    def duplicates(self) -> list[str]:
        return [str(fact.kind) for fact in self.of(DuplicateEvent)]

    @property
    def ends(self) -> list[str]:
        return [str(fact.cause) for fact in self.of(StreamClosed)]

    def transport(self, url: str = URL, generation: Generation = Generation.STREAMABLE_HTTP) -> ClientTransport:
        transport = self.watch.transport(url)
        transport.generation = generation
        return transport

    def line(self, kind: Stream = Stream.STANDALONE, **known: Any) -> Line:
        """A stream of a client of its own."""
        return Line(self, self.transport(), kind, **known)

    def post(
        self,
        transport: ClientTransport,
        method: str | None = "tools/call",
        session: str | None = "S1",
        *,
        status: int = 200,
        named: str | None = None,
        call: tuple[str, Any] | None = None,
        protocol: str | None = FIRST,
    ) -> None:
        """A POST as the HTTP hook sees it, answered with anything but an event stream."""
        request = RequestHead("POST", session, None, protocol)
        self.tell(transport.posting(request, method))
        if call is not None:
            self.tell(transport.calling(*call))
        self.tell(transport.posted(request, ResponseHead(status, named), method))


class Line:
    """One logical stream, over all of its connections."""

    def __init__(self, play: Play, transport: ClientTransport, kind: Stream, **known: Any) -> None:
        self.play = play
        self.transport = transport
        self.stream: ClientStream = transport.stream(kind, **known)
        self.connection: Connection | None = None
        self.attempt: Attempt | None = None

    @classmethod
    def listen(cls, play: Play, transport: ClientTransport, request_id: str, params: Any) -> Line:
        line = cls(play, transport, Stream.LISTEN)
        line.stream.dispose()
        line.stream = transport.listen(request_id, params)
        return line

    def request(
        self,
        token: str | None = None,
        *,
        session: str | None = "S1",
        method: str = "GET",
        protocol: str | None = FIRST,
    ) -> RequestHead:
        head = RequestHead(method, session, token, protocol)
        facts, self.attempt = self.stream.requesting(head)
        self.play.tell(facts)
        return head

    def open(
        self,
        token: str | None = None,
        *,
        session: str | None = "S1",
        named: str | None = None,
        method: str = "GET",
        protocol: str | None = FIRST,
        status: int | None = 200,
        event_stream: bool = True,
    ) -> Line:
        head = self.request(token, session=session, method=method, protocol=protocol)
        return self.answered(head, None if status is None else ResponseHead(status, named, event_stream))

    def answered(self, head: RequestHead, answer: ResponseHead | None) -> Line:
        facts, self.connection = self.stream.responded(head, answer, self.attempt)
        self.play.tell(facts)
        return self

    def text(self, text: str) -> Line:
        assert self.connection is not None
        self.play.tell(self.connection.feed(text))
        return self

    def event(self, event_id: str | int | None, data: str | None) -> Line:
        lines = [] if event_id is None else [f"id: {event_id}\n"]
        return self.text("".join([*lines, *([] if data is None else [f"data: {data}\n"]), "\n"]))

    def end(self, cause: Disconnect = Disconnect.CLOSED) -> Line:
        assert self.connection is not None
        self.play.tell(self.connection.ended(cause))
        return self

    def given_up(self) -> Line:
        self.play.tell(self.stream.given_up())
        return self

    def over(self) -> None:
        self.transport.finished(self.stream)


def message(text: str) -> str:
    """A notification."""
    return json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": text}})


def response(request_id: str | int | None, **members: Any) -> str:
    """The answer to a request."""
    return json.dumps({"jsonrpc": "2.0", "id": request_id, **(members or {"result": {}})})

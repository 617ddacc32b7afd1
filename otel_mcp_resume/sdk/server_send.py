"""The ASGI channels of one exchange: what the application says in its response, and whether its peer is still there.

A written message is one that left through `send`. One body chunk is one event, as `sse_starlette`
and the SDK write them; that it has a payload is all that is looked at.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from otel_mcp_resume.rules.terms import Generation
from otel_mcp_resume.watch.seen import shortened
from otel_mcp_resume.watch.server_request import End

if TYPE_CHECKING:
    from otel_mcp_resume.sdk.runtime import Runtime
    from otel_mcp_resume.watch.server_exchange import Exchange

__all__ = ["Channels", "Message", "Receive", "Send"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_DATA = b"\ndata: "
_BLANK = ord(" ")
"""Above the ends of a line: what begins with it is empty."""
_ENDPOINT = b"event: endpoint"
"""The first event of an HTTP+SSE session: an address, not a message."""


async def _gone(*_: Any) -> Any:
    """Stands where a channel was. Nobody calls it: the application has the channel itself."""


class Channels:
    """`receive` and `send` of one exchange, observed."""

    __slots__ = ("_fail", "_finished", "_left", "_mark", "_report", "exchange", "receive", "send")

    def __init__(
        self, runtime: Runtime, exchange: Exchange, receive: Receive, send: Send, fail: Callable[[Exception], None]
    ) -> None:
        """`fail` takes what breaks in our own bookkeeping."""
        self.exchange = exchange
        self._report = runtime.report
        self._mark = runtime.http_spans.mark_server
        self._fail = fail
        self._finished = False
        self._left = False
        self.send = self._observed_send(send)
        self.receive = self._observed_receive(receive)

    def end(self, *, cancelled: bool) -> None:
        """The application is done with the exchange."""
        # Both hold this object. Without this, what hangs on a request would wait for the garbage collector.
        self.send = self.receive = _gone
        facts = self.exchange.ended(End(finished=self._finished, left=self._left, cancelled=cancelled))
        if facts:
            self._report(facts)

    def _observed_receive(self, receive: Receive) -> Receive:
        async def observed_receive() -> Message:
            message = await receive()
            if message.get("type") == "http.disconnect":
                self._left = True
            return message

        return observed_receive

    def _observed_send(self, send: Send) -> Send:
        wrote, report, is_stream = self.exchange.wrote, self._report, False
        is_legacy = self.exchange.generation is Generation.SSE

        async def observed_send(message: Message) -> None:
            nonlocal is_stream
            try:
                await send(message)
            except Exception:
                self._left = True
                raise
            try:
                if is_stream:
                    body = message.get("body", b"")
                    at = body.find(_DATA)
                    if (
                        at >= 0
                        and at + 7 < len(body)
                        and body[at + 7] > _BLANK
                        and (not is_legacy or body[:15] != _ENDPOINT)
                    ):
                        facts = wrote()
                        if facts:
                            report(facts)
                    elif not self.exchange.is_plain:
                        self._primed(body)
                elif message["type"] == "http.response.start":
                    is_stream = self._head(message)
                    return
                if not message.get("more_body"):
                    self._finished = True
            except Exception as error:  # noqa: BLE001 - ours alone: the application's `send` is outside
                self._fail(error)

        return observed_send

    def _head(self, message: Message) -> bool:
        status: int = message["status"]
        headers: dict[bytes, bytes] = dict(message.get("headers", ()))
        if b"content-type" not in headers or b"mcp-session-id" not in headers:
            # They are not there, or in capitals: ASGI asks for lower case, and not every server insists.
            headers = {name.lower(): value for name, value in headers.items()}
        named = headers.get(b"mcp-session-id")
        session_id = None if named is None else named.decode("latin-1")
        event_stream = headers.get(b"content-type", b"").strip().lower().startswith(b"text/event-stream")
        exchange, request = self.exchange, self.exchange.request
        facts = exchange.head(status, event_stream=event_stream, session_id=session_id)
        if facts:
            self._report(facts)
        try:
            self._mark(exchange.generation, request.session_id or session_id, exchange.kind, request.token)
        except Exception as error:  # noqa: BLE001 - a span of the application's must not cost the rest of the exchange
            self._fail(error)
        return event_stream and 200 <= status < 300

    def _primed(self, body: bytes) -> None:
        """An event with an id alone; or else a comment, or the end."""
        if body[:4] == b"id: ":
            line = body[4:].split(b"\n", 1)[0]
            self._report(self.exchange.primed(shortened(line.rstrip(b"\r").decode("utf-8", "replace"))))

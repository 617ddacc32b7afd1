"""One scripted response, from its head to the way in which it ends."""

from __future__ import annotations

import asyncio
import json
import zlib
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, cast

from .cases import CaseError
from .frames import frame_text
from .sockets import abort, chunk, head_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .driven.steps import Json
    from .matching import Request

__all__ = ["Peer", "Reply"]

REASONS = {200: "OK", 202: "Accepted", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 409: "Conflict"}
RST_AFTER = 0.05
"""Seconds for what was written to leave the socket before the RST."""


class Peer(Protocol):
    """What a response may ask the server that gives it."""

    async def arrival_of(self, rpc_method: str, nth: int | None = None) -> Request: ...

    def latest(self, rpc_method: str) -> Request | None: ...

    def result_for(self, request: Request) -> Json | None: ...


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


class Reply:
    """Writes one scripted response."""

    def __init__(self, server: Peer, request: Request, writer: asyncio.StreamWriter) -> None:
        self.server = server
        self.request = request
        self.writer = writer
        self.subject = request  # what `$id` refers to; an `await` frame moves it on

    async def play(self, respond: Json) -> None:
        await asyncio.sleep(respond.get("delay", 0))
        if "json" in respond or "answer" in respond:
            message = respond.get("json") or self.answer()
            await self._whole(respond, self.filled({"jsonrpc": "2.0", "id": "$id", **message}), "application/json")
        elif "sse" in respond:
            await self._stream(respond)
        elif "status" in respond:
            await self._whole(respond, None, respond.get("type", "text/plain"))
        await self._end(respond.get("end", "close"), chunked="sse" in respond)

    async def _whole(self, respond: Json, body: Any, content_type: str) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self._head(respond, {"Content-Type": content_type, "Content-Length": str(len(data))})
        self.writer.write(data)
        await self.writer.drain()

    async def _stream(self, respond: Json) -> None:
        squeezed = {"Content-Encoding": "gzip"} if respond.get("gzip") else {}
        self._head(respond, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **squeezed})
        await self.writer.drain()
        gzip = zlib.compressobj(wbits=31) if squeezed else None
        frames: list[Json] = respond["sse"] or []
        for frame in frames:
            if "sleep" in frame:
                await asyncio.sleep(frame["sleep"])
            elif "await" in frame:
                self.subject = await self.server.arrival_of(frame["await"], frame.get("nth"))
            else:
                data = frame_text(self, frame).replace("\n", respond.get("newline", "\n")).encode()
                if gzip is not None:
                    data = gzip.compress(data) + gzip.flush(zlib.Z_SYNC_FLUSH)
                await self._send(data, respond.get("split", len(data)))
        if gzip is not None and respond.get("end", "close") == "close":
            tail = gzip.flush()
            await self._send(tail, len(tail))

    async def _send(self, data: bytes, size: int) -> None:
        """Chunks of so many bytes, each given to the network on its own."""
        for start in range(0, len(data), size):
            self.writer.write(chunk(data[start : start + size]))
            await self.writer.drain()
            await asyncio.sleep(0)

    def _head(self, respond: Json, headers: Mapping[str, str]) -> None:
        status = self.request.status = respond.get("status", 200)
        first = f"HTTP/1.1 {status} {REASONS.get(status, 'Scripted')}"
        self.writer.write(head_bytes(first, {**headers, **respond.get("headers", {})}))

    def answer(self) -> Json:
        """What an ordinary server answers to the request that `$id` refers to."""
        return {"id": "$id", "result": self.server.result_for(self.subject)}

    def filled(self, value: Any) -> Any:
        """Puts the JSON-RPC ids of the running exchange in place of `$id` and `$call`."""
        if isinstance(value, dict):
            return {key: self.filled(item) for key, item in cast("Json", value).items()}
        if _is_list(value):
            return [self.filled(item) for item in value]
        if value == "$id":
            return self.subject.rpc.get("id")
        if value == "$call":
            call = self.server.latest("tools/call")
            return call.rpc["id"] if call else None
        return value

    async def _end(self, how: str, *, chunked: bool) -> None:
        if how == "close":
            self.writer.write(b"0\r\n\r\n" if chunked else b"")
            await self.writer.drain()
        elif how == "eof":
            self.writer.close()
        elif how == "reset":
            await asyncio.sleep(RST_AFTER)
            abort(self.writer)
        elif how == "hold":
            await asyncio.Event().wait()
        else:
            raise CaseError(f"unknown end {how!r}")

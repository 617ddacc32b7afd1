"""A server of one's own on the decision boundary, as its documentation advises: real ASGI, no SDK.

It cuts its own connections: `cuts` says, for each connection of a kind in turn, after how many events and how.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from otel_mcp_resume.rules.boundary import (
    LoggedEvent,
    Resumption,
    ResumptionBoundaryError,
    ResumptionKind,
    StreamEventLog,
    handle_reconnect,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from starlette.requests import Request

__all__ = ["OwnServer", "served"]

Message = dict[str, Any]
TOOL = {"name": "count", "inputSchema": {"type": "object"}}
SCHEMA = {"type": "object", "properties": {"yes": {"type": "boolean"}}}


class OwnServer:
    """One log, one wake-up per session, and tools that do not notice who is connected."""

    def __init__(self) -> None:
        self.log = StreamEventLog[Message]()
        self.cuts: defaultdict[str, deque[tuple[int, str]]] = defaultdict(deque)
        self.primes = True
        self.gets: list[str] = []
        """What each GET was: `stream`, `session`, or the problem with it."""
        self.answers: list[str] = []
        """Ids of the server requests that were answered, once for each answer."""
        self.asks_when_cut: list[str] = []
        """To be asked, one at each cut of a standalone stream, when no stream is there to carry it."""
        self.asks_at_start: list[str] = []
        """To be asked when the session begins: nothing is connected yet."""
        self.url = self.session_id = ""
        self.standalone: str | None = None
        self.answered = asyncio.Event()
        self._changed = asyncio.Event()
        self._connected: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count(1)
        self.app = Starlette(
            routes=[
                Route("/mcp", self.on_get, methods=["GET"]),
                Route("/mcp", self.on_post, methods=["POST"]),
                Route("/mcp", self.on_delete, methods=["DELETE"]),
            ]
        )

    async def on_get(self, request: Request) -> Response:
        try:
            resumption = handle_reconnect(
                self.log,
                request.headers.get("mcp-session-id"),
                request.headers.get("last-event-id"),
                connected=self._connected,
            )
        except ResumptionBoundaryError as error:
            self.gets.append(error.problem.value)
            return JSONResponse(error.as_json_rpc(), error.status)
        self.gets.append(resumption.kind.value)
        if resumption.stream in self._connected:
            return Response(status_code=409)
        if resumption.kind is ResumptionKind.SESSION:
            self.standalone = resumption.stream
        return self._stream(resumption, primed=resumption.kind is ResumptionKind.STREAM)

    async def on_post(self, request: Request) -> Response:
        message = await request.json()
        if message.get("method") == "initialize":
            return self._initialize(message)
        try:
            self.log.check_session(request.headers.get("mcp-session-id"))
        except ResumptionBoundaryError as error:
            return JSONResponse(error.as_json_rpc(), error.status)
        if "method" not in message:
            if self.log.mark_answered(self.session_id, message["id"]):
                self.answers.append(str(message["id"]))
            self.answered.set()
            return Response(status_code=202)
        if message["method"] == "tools/list":
            return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": [TOOL]}})
        if "id" not in message:
            return Response(status_code=202)
        stream = f"request:{message['id']}"
        token = self.log.open_stream(self.session_id, stream)
        self._start(self._count(stream, message))
        return self._stream(self.log.resume(self.session_id, token), primed=False)

    async def on_delete(self, request: Request) -> Response:
        known = self.log.unregister_session(request.headers.get("mcp-session-id", ""))
        self._changed.set()
        return Response(status_code=200 if known else 404)

    def tell(self, data: object) -> None:
        """A notification on the standalone stream, whether it is connected or not."""
        assert self.standalone is not None
        self._append(self.standalone, note(data))

    def ask(self, text: str, stream: str | None = None) -> None:
        key = f"ask-{next(self._numbers)}"
        message = {
            "jsonrpc": "2.0",
            "id": key,
            "method": "elicitation/create",
            "params": {"message": text, "requestedSchema": SCHEMA},
        }
        self.log.queue_server_request(self.session_id, key, message, stream=stream)
        self._changed.set()

    def close(self) -> None:
        self.log.close()
        self._changed.set()
        for task in self._tasks:
            task.cancel()

    def _initialize(self, message: Message) -> Response:
        self.session_id = f"session-{next(self._numbers)}"
        self.log.register_session(self.session_id)
        for text in self.asks_at_start:
            self.ask(text)
        result = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}, "logging": {}},
            "serverInfo": {"name": "own", "version": "1"},
        }
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return JSONResponse(answer, headers={"mcp-session-id": self.session_id})

    async def _count(self, stream: str, call: Message) -> None:
        """The tool: notifications, a question in the middle of them, and the number of notifications as the result."""
        arguments = call["params"]["arguments"]
        for n in range(arguments["to"]):
            if n == arguments.get("ask_at"):
                self.answered.clear()
                self.ask("go on?", stream)
                await self.answered.wait()
            self._append(stream, note(n))
            await asyncio.sleep(0)
        result = {"content": [{"type": "text", "text": str(arguments["to"])}]}
        self._append(stream, {"jsonrpc": "2.0", "id": call["id"], "result": result}, last=True)

    def _append(self, stream: str, message: Message, *, last: bool = False) -> None:
        self.log.append(self.session_id, stream, message, last=last)
        self._changed.set()

    def _start(self, tool: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(tool)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _stream(self, resumption: Resumption[Message], *, primed: bool) -> Response:
        self._connected.add(resumption.stream)
        return StreamingResponse(self._write(resumption, primed=primed), media_type="text/event-stream")

    async def _write(self, resumption: Resumption[Message], *, primed: bool) -> AsyncIterator[str]:
        """One connection, until the stream or the session ends, or the connection is to be cut."""
        kind = "request" if resumption.stream.startswith("request:") else "standalone"
        limit, how = self.cuts[kind].popleft() if self.cuts[kind] else (-1, "")
        try:
            if self.primes and not primed:
                yield f"id: {resumption.start}\nretry: 10\ndata:\n\n"
            if limit:
                async for event in self._follow(resumption, questions=kind == "standalone"):
                    yield f"id: {event.event_id}\nevent: message\ndata: {json.dumps(event.payload)}\n\n"
                    limit -= 1
                    if not limit:
                        break
            if not limit and kind == "standalone" and self.asks_when_cut:
                self._connected.discard(resumption.stream)
                self.ask(self.asks_when_cut.pop(0))
            if not limit and how == "reset":
                raise ConnectionAbortedError  # after the head: the web server can only break the connection
        finally:
            self._connected.discard(resumption.stream)

    async def _follow(self, resumption: Resumption[Message], *, questions: bool) -> AsyncIterator[LoggedEvent[Message]]:
        """The loop of the documentation: there is no border between replay and live to lose anything at."""
        with contextlib.suppress(ResumptionBoundaryError):  # the session has ended, and with it the stream
            while True:
                for event in resumption.events:
                    yield event
                if resumption.finished:
                    return
                self._changed.clear()
                if questions:
                    self.log.deliver_queued(resumption.session_id, resumption.stream)
                following = self.log.resume(resumption.session_id, resumption.position)
                if not following.events:
                    await self._changed.wait()
                resumption = following


def note(data: object) -> Message:
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": data}}


@contextlib.asynccontextmanager
async def served(server: OwnServer) -> AsyncIterator[str]:
    """The URL of the server, on a free port of the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(server.app, log_level="critical", lifespan="off", ws="none")
        web = uvicorn.Server(config)
        serving = asyncio.create_task(web.serve(sockets=[listener]))
        try:
            server.url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
            yield server.url
        finally:
            server.close()
            web.should_exit = True
            await serving

"""A server that takes in sessions it does not know, as many do that are written without the SDK's manager.

"If the session is known, use its transport, else make one" is the whole of it. It reads well, every status is 200,
and after a deploy it answers a client that wants to go on with its stream by giving it another one.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.streamable_http import EventStore, StreamableHTTPServerTransport
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

__all__ = ["adopting_app"]

SESSION_HEADER = b"mcp-session-id"
IDLE_LIMIT = 30.0
"""Seconds after its last request that a session is ended. Nobody deletes one whose client was sent elsewhere."""


@dataclass
class Held:
    """A session's transport, and how it is used."""

    transport: StreamableHTTPServerTransport
    requests: int = 0
    """How many are being served."""
    last_used: float = 0.0
    """In monotonic seconds."""


class Adopter:
    """The ASGI application behind `/mcp`."""

    def __init__(self, server: Any, new_store: Callable[[], EventStore], retry_interval: int) -> None:
        self._server = server
        self._new_store = new_store
        self._retry_interval = retry_interval
        self._sessions: dict[str, Held] = {}
        self._tasks: TaskGroup | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        named = dict(scope["headers"]).get(SESSION_HEADER, b"").decode("latin-1")
        await self._end_idle()
        held = self._sessions.get(named) or await self._open()
        session_id = held.transport.mcp_session_id or ""
        held.requests += 1
        try:
            await held.transport.handle_request(_as_session(scope, session_id), receive, send)
        finally:
            held.requests -= 1
            held.last_used = time.monotonic()
        if held.transport.is_terminated:
            self._sessions.pop(session_id, None)

    async def _end_idle(self) -> None:
        now = time.monotonic()
        idle = [
            session_id
            for session_id, held in self._sessions.items()
            if not held.requests and now - held.last_used > IDLE_LIMIT
        ]
        for session_id in idle:
            await self._sessions.pop(session_id).transport.terminate()

    async def _open(self) -> Held:
        """A transport with a fresh session id, and a server that runs behind it."""
        transport = StreamableHTTPServerTransport(
            uuid4().hex, event_store=self._new_store(), retry_interval=self._retry_interval
        )
        held = self._sessions[transport.mcp_session_id or ""] = Held(transport, last_used=time.monotonic())
        assert self._tasks is not None, "the application has no lifespan"
        await self._tasks.start(self._serve, transport)
        return held

    async def _serve(
        self, transport: StreamableHTTPServerTransport, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        async with transport.connect() as (incoming, outgoing):
            task_status.started()
            await self._server.run(incoming, outgoing, self._server.create_initialization_options())

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncGenerator[None, None]:
        async with anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()


def _as_session(scope: Scope, session_id: str) -> Scope:
    """The request as if it had named this session: the transport refuses any other with a 404, which it should."""
    headers = [(name, value) for name, value in scope["headers"] if name != SESSION_HEADER]
    return {**scope, "headers": [*headers, (SESSION_HEADER, session_id.encode())]}


def adopting_app(server: Any, new_store: Callable[[], EventStore], retry_interval: int) -> Starlette:
    """An application that serves every request, whatever session it names."""
    adopter = Adopter(server, new_store, retry_interval)
    return Starlette(routes=[Route("/mcp", endpoint=adopter)], lifespan=adopter.lifespan)

"""The peer of an instrumented client: plays the rules of a case over raw sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING

from .bounds import Bound, Problem, kept, without
from .cases import for_generation
from .driven.steps import HOST, Json
from .matching import Request, Rule
from .ordinary import LEGACY_PROTOCOL, default_response, result_for
from .reply import Reply
from .sockets import LINE_LIMIT, body_pieces, read_head

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

__all__ = ["ScriptedServer", "check_requests"]


class ScriptedServer:
    """Plays the rules of a case; what no rule takes gets the answer of an ordinary healthy server."""

    def __init__(self, script: Json, protocol: str = LEGACY_PROTOCOL) -> None:
        """`protocol` is spoken where the script names none."""
        self.rules = [Rule(entry["when"], entry["respond"]) for entry in script.get("rules", [])]
        self.session: str | None = script.get("session", "S1")
        self.protocol: str = script.get("protocol", protocol)
        self.requests: list[Request] = []
        self._arrival = asyncio.Condition()
        self._connections: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[int, None]:
        """Serves; gives the port."""
        server = await asyncio.start_server(self._connection, HOST, 0, limit=LINE_LIMIT)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while not writer.is_closing() and (request := await self._read_request(reader)):
                await self._record(request)
                await Reply(self, request, writer).play(self._response_to(request))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _read_request(self, reader: asyncio.StreamReader) -> Request | None:
        head = await read_head(reader)
        if head is None:
            return None
        method, path, _ = head.first.split(" ", 2)
        body = b"".join([piece async for piece in body_pieces(reader, head.headers)])
        return Request(method, path, head.headers, json.loads(body) if body else {})

    async def _record(self, request: Request) -> None:
        async with self._arrival:
            self.requests.append(request)
            self._arrival.notify_all()

    async def arrival_of(self, rpc_method: str, nth: int | None = None) -> Request:
        """The latest request of that JSON-RPC method, waiting for the first one; or the N-th, waiting for that."""

        def arrived() -> list[Request]:
            return [request for request in self.requests if request.rpc_method == rpc_method]

        async with self._arrival:
            await self._arrival.wait_for(lambda: len(arrived()) >= (nth or 1))
        return arrived()[-1 if nth is None else nth - 1]

    def latest(self, rpc_method: str) -> Request | None:
        return next((r for r in reversed(self.requests) if r.rpc_method == rpc_method), None)

    def result_for(self, request: Request) -> Json | None:
        """What an ordinary server of the case's protocol answers."""
        return result_for(request, self.protocol)

    def _response_to(self, request: Request) -> Json:
        # Every rule looks at every request, so that `nth` counts what earlier rules took as well.
        taken = [rule.respond for rule in self.rules if rule.takes(request)]
        return taken[0] if taken else default_response(request, self.protocol, self.session)


def check_requests(server: ScriptedServer, checks: Sequence[Json], generation: int) -> list[Problem]:
    """Wire expectations of a client case: how many requests of a kind were seen."""
    problems: list[Problem | None] = []
    for check in for_generation(checks, generation):
        wanted = without(check, "count", "sdk")
        actual = sum(request.matches(wanted) for request in server.requests)
        label = ", ".join(f"{key}={value}" for key, value in wanted.items())
        problems.append(Bound.parse(check.get("count", ">=1")).problem(f"wire requests {label}", actual))
    return kept(problems)

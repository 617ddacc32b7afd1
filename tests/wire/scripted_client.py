"""The peer of an instrumented server: plays the steps of a case over raw sockets."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from .bounds import Bound, Problem, kept, without
from .cases import CaseError, for_generation
from .driven.steps import HOST, Json, one_entry
from .exchange import Exchange
from .ordinary import LEGACY_PROTOCOL
from .session import Session
from .sockets import LINE_LIMIT, head_bytes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

__all__ = ["ScriptedClient", "check_exchanges"]

ANSWER: Json = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}}


class ScriptedClient:
    """Plays the steps of a case against an instrumented server."""

    def __init__(self, port: int, protocol: str = LEGACY_PROTOCOL) -> None:
        """`protocol` is spoken where a step names none."""
        self.port = port
        self.protocol = protocol
        self.patience = 1.0
        """Factor on all time limits. Nothing waits longer than it must."""
        self.sessions: dict[str, Session] = {}
        self.exchanges: dict[str, Exchange] = {}
        self.saved: dict[str, str | None] = {}
        self.problems: list[Problem] = []

    async def play(self, steps: Sequence[str | Json]) -> None:
        for step in steps:
            action, argument = one_entry(step)
            handler: Callable[[Any], Awaitable[None]] | None = getattr(self, f"do_{action}", None)
            if handler is None:
                raise CaseError(f"unknown step {action!r}")
            await handler(argument)

    async def close(self) -> None:
        for exchange in self.exchanges.values():
            await exchange.drop(reset=False)

    async def do_sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def do_parallel(self, branches: Sequence[Sequence[Json]]) -> None:
        await asyncio.gather(*(self.play(branch) for branch in branches))

    async def do_session(self, arg: Json) -> None:
        """Names a session without any traffic: for modern requests, or to present a session id at will."""
        self.sessions[arg["session"]] = Session(arg.get("protocol", self.protocol), self._value(arg.get("sid")))

    async def do_initialize(self, arg: Json) -> None:
        session = self.sessions.setdefault(arg["session"], Session(self.protocol))
        session.protocol = arg.get("protocol", session.protocol)
        params: Json = {
            "protocolVersion": session.protocol,
            "capabilities": {"sampling": {}},
            "clientInfo": {"name": "scripted", "version": "0"},
        }
        body: Json = {"jsonrpc": "2.0", "id": f"init-{arg['session']}", "method": "initialize", "params": params}
        exchange = await self._send({**arg, "method": "POST"}, body)
        legacy_sse = session.path != "/mcp"
        await exchange.wait_until(lambda: legacy_sse or exchange.ended, 3 * self.patience)
        session.sid = exchange.headers.get("mcp-session-id", session.sid)
        await self.do_notify({"session": arg["session"], "rpc": {"method": "notifications/initialized"}})

    async def do_connect_sse(self, arg: Json) -> None:
        """Opens the legacy stream and keeps the address of its `endpoint` event."""
        session = self.sessions[arg["session"]] = Session(self.protocol)
        exchange = await self._send({"path": "/sse", "method": "GET", **arg}, None)
        if await exchange.wait_until(lambda: bool(exchange.events), 3 * self.patience):
            session.path = exchange.events[0].data or session.path
        exchange.cursor = 1

    async def do_get(self, arg: Json) -> None:
        await self._send({**arg, "method": "GET"}, None)

    async def do_delete(self, arg: Json) -> None:
        await self._send({**arg, "method": "DELETE"}, None)

    async def do_call(self, arg: Json) -> None:
        """Calls the one tool of the test server; `play` is its script."""
        params = {"name": "play", "arguments": {"script": arg.get("play", [])}, "_meta": {"progressToken": "p"}}
        await self.do_request({**arg, "rpc": {"method": "tools/call", "params": params}})

    async def do_request(self, arg: Json) -> None:
        rpc_id = arg.get("id")
        rpc_id = self.sessions[arg["session"]].take_id() if rpc_id is None else rpc_id
        await self._send({**arg, "method": "POST"}, {"jsonrpc": "2.0", "id": rpc_id, **arg["rpc"]})

    async def do_notify(self, arg: Json) -> None:
        await self._send({**arg, "method": "POST"}, {"jsonrpc": "2.0", **arg["rpc"]})

    async def do_answer(self, arg: Json) -> None:
        """Answers the latest server request that arrived on an exchange."""
        asked = [event.rpc for event in self.exchanges[arg["from"]].events if "method" in event.rpc]
        await self.do_notify({"session": arg["session"], "rpc": {"id": asked[-1]["id"], "result": ANSWER}})

    async def do_read(self, arg: Json) -> None:
        """Waits for `events: N` more events, for `until: end`, or just `for` some seconds; may `save` the last id."""
        exchange = self.exchanges[arg["from"]]
        within = arg.get("within", 3) * self.patience
        if "for" in arg:
            await asyncio.sleep(arg["for"])
            exchange.cursor = len(exchange.events)
        elif "events" in arg:
            wanted = exchange.cursor + arg["events"]
            if not await exchange.wait_until(lambda: len(exchange.events) >= wanted, within):
                self.problems.append(Problem(f"read {arg['from']}: {len(exchange.events)} events, wanted {wanted}"))
            exchange.cursor = min(wanted, len(exchange.events))
        elif not await exchange.wait_until(lambda: exchange.ended, within):
            self.problems.append(Problem(f"read {arg['from']}: did not end"))
        else:
            exchange.cursor = len(exchange.events)
        if "save" in arg:
            self.saved[arg["save"]] = exchange.last_id()

    async def do_drop(self, arg: Json) -> None:
        await self.exchanges[arg["request"]].drop(reset=arg.get("how", "reset") == "reset")
        await asyncio.sleep(arg.get("then", 0.3))  # time for the server to notice

    def _value(self, value: Any) -> Any:
        """`$name` is a saved event id, `$session.NAME` the id of a session."""
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        if value.startswith("$session."):
            return self.sessions[value.removeprefix("$session.")].sid
        return self.saved[value[1:]]

    async def _send(self, arg: Json, body: Json | None) -> Exchange:
        session = self.sessions.get(arg.get("session", ""), Session(self.protocol))
        body = None if body is None else session.body(body)
        data = b"" if body is None else json.dumps(body).encode()
        headers = session.headers(self.port, body, len(data), self._value(arg.get("token")))
        reader, writer = await asyncio.open_connection(HOST, self.port, limit=LINE_LIMIT)
        writer.write(head_bytes(f"{arg['method']} {arg.get('path', session.path)} HTTP/1.1", headers) + data)
        await writer.drain()
        exchange = Exchange(writer)
        exchange.pump = asyncio.create_task(exchange.receive(reader))
        self.exchanges[arg.get("as", f"unnamed-{len(self.exchanges)}")] = exchange
        if not arg.get("no_wait"):
            await exchange.wait_until(lambda: exchange.status is not None, 2 * self.patience)
        return exchange


def check_exchanges(client: ScriptedClient, checks: Sequence[Json], generation: int) -> list[Problem]:
    """Wire expectations of a server case: what came back on a named request."""
    problems = list(client.problems)
    for check in for_generation(checks, generation):
        name = check["request"]
        if name not in client.exchanges:
            raise CaseError(f"no request is called {name!r}")
        summary = client.exchanges[name].summary()
        for key, wanted in without(check, "request", "sdk").items():
            if key not in summary:
                raise CaseError(f"unknown wire check {key!r}")
            problems += kept([_wire_problem(f"wire {name}.{key}", wanted, summary[key])])
    return problems


def _wire_problem(what: str, wanted: Any, actual: Any) -> Problem | None:
    counted = isinstance(actual, int) and not isinstance(actual, bool)
    if counted and isinstance(wanted, (int, str)) and not isinstance(wanted, bool):
        return Bound.parse(wanted).problem(what, actual)
    return None if wanted == actual else Problem(f"{what}: wanted {wanted}, is {actual}")

"""A process of an arm: `python -m tests.bench.child ROLE ARM SINK OPTIONS`, which obeys lines of JSON on its stdin."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.bench.arms import enter

__all__: list[str] = []

PATIENCE = 60.0
"""Seconds for one call."""
Flush = Callable[[], object]


def say(**message: Any) -> None:
    print(json.dumps(message), flush=True)


def spent(flush: Flush) -> float:
    """The CPU time of this process in seconds, with the export of what it has recorded."""
    flush()
    os.getppid()  # a mark for callgrind, which may be counting
    return time.process_time()


def checks() -> dict[str, float]:
    """What the plugin has counted, so that nobody measures a plugin that does nothing."""
    activate = sys.modules.get("otel_mcp_resume.activate")
    plugin = None if activate is None else activate.current()
    if plugin is None:
        return {}
    names: Any = importlib.import_module("otel_mcp_resume.report.names")
    table = {"events": names.EVENTS, "errors": names.INTERNAL_ERRORS}
    counted = {what: sum(value for _, value in plugin.metrics.read(name)) for what, name in table.items()}
    attempts = list(plugin.metrics.read(names.ATTEMPTS))
    counted["attempts"] = sum(value for _, value in attempts)
    counted["proven"] = sum(value for labels, value in attempts if labels["outcome"] == "proven")
    return counted


def memory() -> dict[str, int]:
    """Resident bytes, and what tracemalloc saw, if it runs."""
    tracemalloc: Any = importlib.import_module("tracemalloc")
    gc.collect()
    with open("/proc/self/status") as status:  # noqa: PTH123 - no import in the process that is measured
        resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) * 1024
    found = {"resident": resident, "traced": 0, "ours": 0}
    if tracemalloc.is_tracing():
        found["traced"] = tracemalloc.get_traced_memory()[0]
        snapshot = tracemalloc.take_snapshot()
        ours = snapshot.filter_traces([tracemalloc.Filter(inclusive=True, filename_pattern="*otel_mcp_resume*")])
        found["ours"] = sum(trace.size for trace in ours.traces)
    return found


def endpoint() -> str:
    """Where the plugin shows its metrics, if there is one."""
    activate = sys.modules.get("otel_mcp_resume.activate")
    plugin = None if activate is None else activate.current()
    return (plugin and plugin.exporter.url) or ""


class Gets:
    """An ASGI application that counts its open streams of sessions."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.open = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return

        async def counted(message: Any) -> None:
            self.open += message["type"] == "http.response.start"
            await send(message)

        await self._app(scope, receive, counted)


def serve(options: dict[str, Any], flush: Flush) -> None:
    """Serves until stdin ends, and answers what it has spent."""
    uvicorn: Any = importlib.import_module("uvicorn")
    sdk: Any = importlib.import_module("tests.bench.sdk")
    app = Gets(sdk.make_app(stored=options["stored"]))
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1, timeout_keep_alive=600)
    service = uvicorn.Server(config)

    def obey() -> None:
        say(port=listener.getsockname()[1])
        for line in sys.stdin:
            command = json.loads(line)["do"]
            if command == "cpu":
                say(cpu=spent(flush))
            elif command == "gets":
                say(gets=app.open)
            elif command == "endpoint":
                say(url=endpoint())
            else:
                say(**(memory() if command == "memory" else checks()))
        service.should_exit = True

    threading.Thread(target=obey, daemon=True).start()
    service.run(sockets=[listener])


async def act(options: dict[str, Any], flush: Flush) -> None:
    """A client with one session, which makes calls when it is told to."""
    sdk: Any = importlib.import_module("tests.bench.sdk")
    heard = 0

    async def hear(_: Any) -> None:
        nonlocal heard
        heard += 1

    async with sdk.connected(options["url"], hear) as session:
        await session.initialize()
        say(ready=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            command = json.loads(line)
            if command["do"] == "checks":
                say(**checks())
                continue
            heard, cpu, wall = 0, spent(flush), time.perf_counter()
            if command["do"] == "burst":
                await session.call_tool("burst", {"count": command["count"]})
            else:
                arguments = {"text": "hello"} if command["do"] == "echo" else {}
                for _ in range(command["count"]):
                    await asyncio.wait_for(session.call_tool(command["do"], arguments), PATIENCE)
            wall = time.perf_counter() - wall
            say(cpu=spent(flush) - cpu, wall=wall, heard=heard)


async def hold(options: dict[str, Any]) -> None:
    """A client that opens many sessions, first without their GET streams, then with them."""
    held: Any = importlib.import_module("tests.bench.held")
    await held.hold(options["url"], options["count"], say, lambda: {**memory(), "url": endpoint()})


def main() -> None:
    role, arm, sink, options = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
    if options.get("traced"):
        importlib.import_module("tracemalloc").start(1)
    if options.get("counted"):
        gc.disable()  # when it runs depends on everything that was imported
    flush = enter(arm, sink)
    if role == "server":
        serve(options, flush)
    elif role == "client":
        asyncio.run(act(options, flush))
    else:
        asyncio.run(hold(options))


main()

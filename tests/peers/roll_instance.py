"""Server instances that come and go: a process that has imported everything, and forks one of them for each order.

Orders are lines on its standard input, answered by a line each: `start PATH PORT KIND`, `stop PATH`, `kill PATH`.
An instance writes two files named after it: `PATH.wire`, every request that reached it, by a middleware of our own, and
`PATH.verdicts`, the records of the plugin, which the environment variable brings in.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.streamable_http import EventStore
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from otel_mcp_resume.cli.demo.adopt import SESSION_HEADER, adopting_app
from otel_mcp_resume.cli.demo.sdk import http_app, protocol_server
from otel_mcp_resume.cli.demo.stores import SessionLog
from otel_mcp_resume.cli.demo.tools import TOOLS

RETRY = 200
"""Milliseconds that a client is told to wait before it comes back."""


class SeparateStore(EventStore):
    """A log for each session, which the SDK's manager has no way to ask for: found by the context of the session."""

    async def store_event(self, stream_id: str, message: Any) -> str:
        return await LOG.get().store_event(stream_id, message)

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        return await LOG.get().replay_events_after(last_event_id, send_callback)


LOG: ContextVar[SessionLog] = ContextVar("log")


def build(kind: str, logs: Callable[[], SessionLog]) -> ASGIApp:
    """An application on the SDK's manager, or one that takes in sessions that it does not know."""
    if kind == "adopting":
        return adopting_app(protocol_server(TOOLS), logs, RETRY)
    app: ASGIApp = http_app(TOOLS, event_store=SeparateStore(), retry_interval=RETRY)
    return app


def recorded(app: ASGIApp, log: Path, new_log: Callable[[], SessionLog]) -> ASGIApp:
    """`app`, with a line in `log` for each request: what it asked for, and how it was answered."""
    out = log.open("a", buffering=1)
    logs: dict[str, SessionLog] = {}

    async def recording(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        seen = {
            "method": scope["method"],
            "session": headers.get("mcp-session-id", ""),
            "token": headers.get("last-event-id", ""),
        }

        own = logs.get(seen["session"]) or new_log()
        LOG.set(own)

        async def record(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = dict(message["headers"]).get(SESSION_HEADER, b"").decode()
                logs.setdefault(answered, own)
                out.write(json.dumps({**seen, "status": message["status"], "answered": answered}) + "\n")
            await send(message)

        await app(scope, receive, record)

    return recording


class Verdicts(logging.Handler):
    """Writes what the plugin records, as JSON."""

    def __init__(self, log: Path) -> None:
        super().__init__(logging.DEBUG)
        self._out = log.open("a", buffering=1)

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {key: value for key, value in vars(record).items() if key.startswith(("mcp", "http."))}
        if event := vars(record).get("event"):
            self._out.write(json.dumps({"event": event, **fields}) + "\n")

    @classmethod
    def into(cls, log: Path) -> None:
        """From now on."""
        logger = logging.getLogger("otel_mcp_resume")
        logger.setLevel(logging.DEBUG)
        logger.handlers[:] = [cls(log)]
        logger.propagate = False


def serve(path: str, port: int, kind: str) -> None:
    Verdicts.into(Path(f"{path}.verdicts"))
    numbers = itertools.count(1)

    def new_log() -> SessionLog:
        return SessionLog(numbers)

    app = recorded(build(kind, new_log), Path(f"{path}.wire"), new_log)
    config = uvicorn.Config(app, port=port, log_level="critical", timeout_graceful_shutdown=0)
    uvicorn.Server(config).run()


def main() -> None:
    running: dict[str, int] = {}
    for line in sys.stdin:
        verb, path, *rest = line.split()
        if verb == "start":
            pid = os.fork()
            if not pid:
                try:
                    serve(path, int(rest[0]), rest[1])
                finally:
                    os._exit(0)
            running[path] = pid
        else:
            pid = running.pop(path)
            os.kill(pid, signal.SIGKILL if verb == "kill" else signal.SIGTERM)
            os.waitpid(pid, 0)
        print(verb, path, flush=True)
    for pid in running.values():
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()

"""Server instances that come and go: a process that has imported everything, and forks one of them for each order.

Orders are lines on its standard input, answered by a line each: `start PATH PORT KIND`, `stop PATH`, `kill PATH`.
An instance writes two files named after it: `PATH.wire`, every request that reached it and every message that it
stored, by code of our own, and `PATH.verdicts`, the records of the plugin, which the environment variable brings in.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TextIO

import uvicorn
from mcp.server.streamable_http import EventStore
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from otel_mcp_resume.cli.demo.adopt import SESSION_HEADER, adopting_app
from otel_mcp_resume.cli.demo.sdk import http_app, protocol_server
from otel_mcp_resume.cli.demo.stores import SessionLog
from otel_mcp_resume.cli.demo.tools import TOOLS

__all__ = ["Verdicts", "end_with"]

RETRY = 200
"""Milliseconds that a client is told to wait before it comes back."""
GRACE = 5.0
"""Seconds that a process has to end when nobody gives orders any more."""

Note = Callable[..., None]


class SeparateStore(EventStore):
    """A log for each session, which the SDK's manager has no way to ask for: found by the context of the session."""

    def __init__(self, note: Note) -> None:
        self._note = note

    async def store_event(self, stream_id: str, message: Any) -> str:
        if message is not None:
            self._note(what="stored", text=message.model_dump_json())
        return await LOG.get().store_event(stream_id, message)

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        return await LOG.get().replay_events_after(last_event_id, send_callback)


LOG: ContextVar[SessionLog] = ContextVar("log")


def build(kind: str, logs: Callable[[], SessionLog], note: Note) -> ASGIApp:
    """An application on the SDK's manager, or one that takes in sessions that it does not know."""
    if kind == "adopting":
        return adopting_app(protocol_server(TOOLS), logs, RETRY)
    app: ASGIApp = http_app(TOOLS, event_store=SeparateStore(note), retry_interval=RETRY)
    return app


def recorded(app: ASGIApp, note: Note, new_log: Callable[[], SessionLog]) -> ASGIApp:
    """`app`, with a note of each request: what it asked for, how it was answered, and that it is over."""
    logs: dict[str, SessionLog] = {}
    numbers = itertools.count()

    async def recording(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        session, number = headers.get("mcp-session-id", ""), next(numbers)
        own = logs.get(session) or new_log()
        LOG.set(own)

        async def record(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = {name.lower(): value.decode() for name, value in message["headers"]}
                answered = answer.get(SESSION_HEADER, "")
                logs.setdefault(answered, own)
                note(
                    what="answered",
                    number=number,
                    method=scope["method"],
                    session=session,
                    token=headers.get("last-event-id", ""),
                    status=message["status"],
                    answered=answered,
                    stream="event-stream" in answer.get(b"content-type", ""),
                )
            await send(message)

        try:
            await app(scope, receive, record)
        finally:
            note(what="over", number=number)

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


def end_with(source: TextIO, loop: asyncio.AbstractEventLoop, on_line: Callable[[str], object]) -> None:
    """Hands over every line, and an empty one at the end, after which the process has no long time to live."""

    def read() -> None:
        for line in source:
            loop.call_soon_threadsafe(on_line, line)
        loop.call_soon_threadsafe(on_line, "")
        time.sleep(GRACE)
        os._exit(1)

    threading.Thread(target=read, daemon=True).start()


def serve(path: str, port: int, kind: str) -> None:
    Verdicts.into(Path(f"{path}.verdicts"))
    numbers = itertools.count(1)
    out = Path(f"{path}.wire").open("a", buffering=1)  # noqa: SIM115 - until the process ends

    def note(**what: Any) -> None:
        out.write(json.dumps(what) + "\n")

    def new_log() -> SessionLog:
        return SessionLog(numbers)

    app = recorded(build(kind, new_log, note), note, new_log)
    config = uvicorn.Config(app, port=port, log_level="critical", timeout_graceful_shutdown=0)
    uvicorn.Server(config).run()


def main() -> None:
    running: dict[str, int] = {}
    life, held = os.pipe()  # the other end closes with this process, whatever ends it
    for line in sys.stdin:
        verb, path, *rest = line.split()
        if verb == "start":
            pid = os.fork()
            if not pid:
                os.close(held)
                threading.Thread(target=lambda: os.read(life, 1) or os._exit(1), daemon=True).start()
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

"""A server process of the demo.

Nothing here knows of the plugin. The environment variable alone brings it into the process.
"""

from __future__ import annotations

import argparse
import itertools
import socket
from collections.abc import Sequence
from typing import Any

import uvicorn

from otel_mcp_resume.cli.demo.adopt import adopting_app
from otel_mcp_resume.cli.demo.legacy import numbered
from otel_mcp_resume.cli.demo.orders import Orders, say
from otel_mcp_resume.cli.demo.sdk import http_app, legacy_app, protocol_server
from otel_mcp_resume.cli.demo.stores import STORES, SessionLog
from otel_mcp_resume.cli.demo.tools import TOOLS

__all__ = ["build", "main"]

RETRY_INTERVAL = 200
"""Milliseconds that a client is told to wait before it comes back. Short, so that the demo is."""


def build(store: str, first: int, *, adopt: bool, legacy: bool) -> Any:
    """The ASGI application: an ordinary one with one event store for all, one that adopts sessions, or HTTP+SSE."""
    numbers = itertools.count(first)
    if legacy:
        return numbered(legacy_app(TOOLS), numbers)
    if adopt:
        return adopting_app(protocol_server(TOOLS), lambda: SessionLog(numbers), RETRY_INTERVAL)
    kind = STORES[store]
    if kind is None:
        return http_app(TOOLS)
    return http_app(TOOLS, event_store=kind(numbers), retry_interval=RETRY_INTERVAL)


def main(argv: Sequence[str], orders: Orders) -> None:
    """Serves on a free port of the loopback, which it tells the demo, until there are no orders any more."""
    parser = argparse.ArgumentParser(prog="server")
    parser.add_argument("--store", choices=sorted(STORES), default="log")
    parser.add_argument("--first", type=int, default=1, help="number of the first event")
    parser.add_argument("--adopt", action="store_true", help="take in sessions of other instances")
    parser.add_argument("--legacy", action="store_true", help="speak HTTP+SSE, with numbered events")
    arguments = parser.parse_args(argv)
    app = build(arguments.store, arguments.first, adopt=arguments.adopt, legacy=arguments.legacy)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))

    def stop() -> None:
        server.should_exit = True

    orders.on_end = stop
    listener = socket.create_server(("127.0.0.1", 0))
    say("ready", port=listener.getsockname()[1])
    server.run(sockets=[listener])

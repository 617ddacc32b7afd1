"""A process that has imported everything, and forks one child for each case: many cases without many imports."""

from __future__ import annotations

import importlib
import json
import logging
import os
import signal
import sys
from collections.abc import Callable

from .steps import HOST, Json

__all__ = ["nurse"]

MODULES = (
    *("mcp", "mcp.client.streamable_http", "mcp.client.sse", "mcp.server.streamable_http_manager", "mcp.server.sse"),
    *(
        "uvicorn",
        "uvicorn.protocols.http.h11_impl",
        "uvicorn.lifespan.on",
        "uvicorn.loops.asyncio",
        "starlette.applications",
    ),
)


def nurse(roles: dict[str, Callable[[Json], None]]) -> None:
    """Forks for every order on stdin. A child writes to the pipe that its order names, its number first."""
    for name in MODULES:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    for line in sys.stdin:
        order = json.loads(line)
        if os.fork():
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(order["pipe"], os.O_WRONLY), 1)
        print(json.dumps({"pid": os.getpid()}), flush=True)
        _log_to(order["log"])
        try:
            _serve_metrics(order["metrics"])
            roles[order["role"]](order["spec"])
        finally:
            os._exit(0)


def _log_to(file: str) -> None:
    if file:
        logging.basicConfig(filename=file, level=logging.INFO, format="%(levelname)s %(name)s %(message)s", force=True)
        logging.getLogger("mcp").setLevel(logging.DEBUG)


def _serve_metrics(port: int) -> None:
    """As an application does that serves prometheus_client's default registry itself."""
    if port:
        importlib.import_module("prometheus_client").start_http_server(port, HOST)

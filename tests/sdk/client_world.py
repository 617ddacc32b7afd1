"""A real SDK client, a scripted peer behind a real socket, and the plugin in between.

The peer runs in a thread of its own, so that the client may run under asyncio or trio.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import anyio
from opentelemetry.trace import TracerProvider

from otel_mcp_resume.plugin import Plugin, Providers
from otel_mcp_resume.rooms import ROOMS
from otel_mcp_resume.rules.terms import Side
from otel_mcp_resume.settings import Settings
from tests.wire.driven.steps import Json
from tests.wire.matching import Request
from tests.wire.scripted_server import ScriptedServer

__all__ = [
    "BACKENDS",
    "HTTP",
    "IS_MODERN",
    "RESUMES",
    "TAKES_CLIENT",
    "Peer",
    "attempts",
    "connected",
    "counts",
    "faults",
    "plugged",
    "resume",
    "resumes",
    "run",
    "served",
    "text_of",
    "until",
]

IS_MODERN = not version("mcp").startswith("1.")
RESUMES = tuple(map(int, version("mcp").split(".")[:2])) >= (1, 23)
"""Whether the SDK re-opens the stream of a request by itself."""
HTTP: Any = importlib.import_module("httpx2" if find_spec("httpx2") else "httpx")
BACKENDS = ("asyncio", "trio")
_clients: Any = importlib.import_module("mcp.client.streamable_http")
TAKES_CLIENT = hasattr(_clients, "streamable_http_client")
_mcp: Any = importlib.import_module("mcp")

LIMIT = 30.0
"""Seconds for one conversation."""


class Peer:
    """The scripted server, as seen from another thread."""

    def __init__(self, server: ScriptedServer, port: int) -> None:
        self._server = server
        self.url = f"http://127.0.0.1:{port}/mcp"

    @property
    def requests(self) -> list[Request]:
        return list(self._server.requests)

    def seen(self, **wanted: Any) -> int:
        """How many requests had these fields."""
        return sum(request.matches(wanted) for request in self.requests)


@contextlib.contextmanager
def served(*rules: Json, **script: Any) -> Iterator[Peer]:
    """A peer that plays `rules`, and is an ordinary healthy server otherwise, of a revision that every SDK knows."""
    server = ScriptedServer({"rules": list(rules), "protocol": "2025-06-18", **script})
    ready: list[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = []
    started = threading.Event()

    async def serve() -> None:
        async with server.running() as port:
            over = asyncio.Event()
            ready.append((port, asyncio.get_running_loop(), over))
            started.set()
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert started.wait(LIMIT)
    port, loop, over = ready[0]
    try:
        yield Peer(server, port)
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(LIMIT)


@contextlib.contextmanager
def plugged(proof_timeout: float = 20.0, tracer_provider: TracerProvider | None = None) -> Iterator[Plugin]:
    """The plugin with its client hooks in place, and all of them gone afterwards."""
    settings = Settings(prometheus_port=None, proof_timeout=proof_timeout)
    plugin = Plugin(settings, Providers(tracer_provider=tracer_provider))
    for room in ROOMS:
        if room.side is Side.CLIENT:
            importlib.import_module(room.module)
            plugin.open(room)
    try:
        yield plugin
    finally:
        plugin.close()


def run(backend: str, play: Callable[[], Awaitable[Any]]) -> Any:
    """What `play` returns, under that event loop, within the limit."""

    async def limited() -> Any:
        with anyio.fail_after(LIMIT):
            return await play()

    return anyio.run(limited, backend=backend)


@contextlib.asynccontextmanager
async def connected(url: str, http: Any = None, **session: Any) -> AsyncGenerator[Any, None]:
    """An initialized session over the transport's current name, or the one it had before mcp 1.24."""
    if TAKES_CLIENT:
        connect = _clients.streamable_http_client(url, http_client=http)
    else:
        connect = _clients.streamablehttp_client(url)
    async with connect as streams, _mcp.ClientSession(streams[0], streams[1], **session) as api:
        await api.initialize()
        yield api


def counts(plugin: Plugin, name: str, *labels: str) -> dict[str, float]:
    """The series of a metric that are not 0, by the values of these labels."""
    found: dict[str, float] = {}
    for family in plugin.metrics.collect():
        for sample in family.samples:
            if sample.name == name and sample.value:
                key = " ".join(sample.labels[label] for label in labels)
                found[key] = found.get(key, 0) + sample.value
    return found


def attempts(plugin: Plugin) -> dict[str, float]:
    return counts(plugin, "mcp_resume_attempts_total", "stream", "outcome", "reason")


def faults(plugin: Plugin) -> dict[str, float]:
    return counts(plugin, "mcp_resume_internal_errors_total", "hook")


def resumes(first: Json | None = None, *then: Json, retry: int = 10) -> list[Json]:
    """The rules of a call that is cut after event 1 and resumed from there."""
    answer = {"id": 2, "result": "done"}
    return [
        {"when": {"rpc": "tools/call"}, "respond": {"sse": [{"id": 1, "retry": retry, "data": ""}]}},
        {"when": {"method": "GET", "token": "1"}, "respond": {"sse": [answer]} if first is None else first},
        *then,
    ]


def text_of(result: Any) -> str:
    """The text of a tool result."""
    return " ".join(block.text for block in result.content)


async def resume(api: Any, token: str) -> Any:
    """The result of a call of an earlier process, from the token that it kept."""
    types = importlib.import_module("mcp.types")
    metadata = importlib.import_module("mcp.shared.message").ClientMessageMetadata(resumption_token=token)
    params = types.CallToolRequestParams(name="t", arguments={})
    request = types.CallToolRequest(method="tools/call", params=params)
    if not IS_MODERN:
        request = types.ClientRequest(request)
    return await api.send_request(request, types.CallToolResult, metadata=metadata)


async def until(holds: Callable[[], object]) -> None:
    """Waits for what happens in another thread, or in a library that tells nobody."""
    while not holds():  # noqa: ASYNC110 - nobody could set an event
        await anyio.sleep(0.02)

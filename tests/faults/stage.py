"""One play with the plugin on, from its activation to its removal, and all that is to be seen of a fault."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import structlog
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from otel_mcp_resume import activate
from tests.faults import sites

__all__ = ["Seen", "play_bare", "play_with"]

LIMIT = 60.0
"""Seconds for one play, which needs less than one if nothing else runs."""
OURS = "otel_mcp_resume"
FAILED = "otel-mcp-resume failed in"

Play = Callable[[], Awaitable[list[Any]]]

os.environ.update(
    OTEL_EXPORTER_PROMETHEUS_PORT="0", OTEL_MCP_RESUME_METRICS="prometheus,otel", OTEL_MCP_RESUME_PROOF_TIMEOUT="0.05"
)


@dataclass
class Seen:
    """What came of a play."""

    result: Any = None
    seconds: float = 0.0
    counted: float = 0.0
    is_on: bool = False
    """Whether the plugin came up at all."""
    records: list[str] = field(default_factory=list[str])
    """Of faults, in our log."""
    noises: list[str] = field(default_factory=list[str])
    """What an event loop or a thread said that nobody else has caught."""
    left: list[str] = field(default_factory=list[str])
    """Hooks that were in place after the plugin had gone."""


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record.getMessage())


@contextlib.contextmanager
def _listening(seen: Seen) -> Iterator[None]:
    handler, logger = _Records(), logging.getLogger(OURS)
    hook = threading.excepthook
    threading.excepthook = lambda args: seen.noises.append(
        f"thread {args.thread and args.thread.name}: {args.exc_value!r}"
    )
    logger.addHandler(handler)
    logger.propagate = False
    sdk = logging.getLogger("mcp")
    sdk.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        seen.records = [text for text in handler.found if text.startswith(FAILED)]
        logger.removeHandler(handler)
        threading.excepthook = hook


@contextlib.contextmanager
def _caught(seen: Seen, what: str) -> Iterator[None]:
    """Neither may raise, whatever fails."""
    try:
        yield
    except BaseException as error:  # noqa: BLE001 - noted as what somebody would notice
        seen.noises.append(f"{what}() raised {error!r}")


async def _limited(play: Play, seen: Seen, scrape: Callable[[], None] | None) -> Any:
    def noise(_: Any, context: dict[str, Any]) -> None:
        seen.noises.append(f"event loop: {context.get('message')} {context.get('exception')!r}")

    asyncio.get_running_loop().set_exception_handler(noise)
    result = await asyncio.wait_for(play(), LIMIT)
    if scrape is not None:
        await asyncio.to_thread(scrape)
    return result


def _run(play: Play, seen: Seen, scrape: Callable[[], None] | None = None) -> None:
    began = time.monotonic()
    try:
        seen.result = asyncio.run(_limited(play, seen, scrape))
    except BaseException as error:  # noqa: BLE001 - whatever the application gets is what is compared
        seen.result = leaves(error)
    seen.seconds = time.monotonic() - began


def leaves(error: BaseException) -> list[str]:
    inner = getattr(error, "exceptions", ())
    return [leaf for each in inner for leaf in leaves(each)] or [repr(error)]


def play_bare(play: Play) -> Seen:
    """Without the plugin."""
    seen = Seen()
    with _listening(seen):
        _run(play, seen)
    return seen


def play_with(play: Play, *, structured: bool) -> Seen:
    """With the plugin, its endpoint, a tracer, a meter, and a logging configuration of the application's."""
    seen = Seen()
    if structured:
        structlog.configure(processors=[lambda *_: (_ for _ in ()).throw(structlog.DropEvent)])
    spans, reader = TracerProvider(shutdown_on_exit=False), InMemoryMetricReader()
    meters = MeterProvider([reader], shutdown_on_exit=False)
    with _listening(seen):
        sites.phase = sites.phase and "activation"
        with _caught(seen, "instrument"):
            activate.instrument(tracer_provider=spans, meter_provider=meters)
        with sites.unplanted():
            plugin = activate.current()
            seen.is_on = plugin is not None and any(plugin.hooks.values())

        def scrape() -> None:
            with contextlib.suppress(Exception):
                reader.collect()
            with contextlib.suppress(Exception):
                with sites.unplanted():
                    url = None if plugin is None else plugin.exporter.url
                if url:
                    urllib.request.urlopen(url, timeout=5).read()

        sites.phase = sites.phase and "play"
        _run(play, seen, scrape)
        sites.phase = sites.phase and "removal"
        with _caught(seen, "uninstrument"):
            activate.uninstrument()
        sites.phase = ""
        with sites.unplanted():
            activate.uninstrument()
            if plugin is not None:
                seen.counted = _counted(plugin)
                seen.left = [hook for hook, there in plugin.hooks.items() if there]
                plugin._close()
    structlog.reset_defaults()
    return seen


def _counted(plugin: Any) -> float:
    """The faults that the plugin knows of; one where its numbers can't be read any more: each scrape fails, aloud."""
    plugin.metrics._lock = threading.Lock()  # the one it has may be the nonsense that was planted
    try:
        samples = [sample for family in plugin.metrics.collect() for sample in family.samples]
    except (AttributeError, TypeError):
        return 1.0
    return float(sum(sample.value for sample in samples if sample.name == "mcp_resume_internal_errors_total"))


def unexpected(seen: Seen, bare: Seen, *, is_removal: bool) -> list[str]:
    """What an application, or whoever looks at its stderr, would notice."""
    found: list[str] = []
    if seen.result != bare.result:
        found.append(f"another result: {_difference(seen.result, bare.result)}")
    found += [noise for noise in seen.noises if noise not in bare.noises]
    if len(seen.records) > 1:
        found.append(f"{len(seen.records)} records within a minute: {seen.records}")
    if seen.left and not is_removal:
        found.append(f"left behind: {', '.join(seen.left)}")
    return found


def _difference(one: Any, other: Any) -> str:
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
        if pairs and isinstance(pairs[0][0], list):
            return _difference(*pairs[0])
        return str(pairs[:1])[:600]
    return f"{str(one)[:300]} for {str(other)[:300]}"

"""Hostile peers without end, on both sides, and what must never come of it.

No exception of ours, no internal error, no memory beyond the limits, no label with a value that is not in our
vocabulary, no id in a number, no content anywhere.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from random import Random
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from otel_mcp_resume.plugin import Plugin, Providers
from otel_mcp_resume.report.series import INTERNAL_HOOKS
from otel_mcp_resume.rooms import ROOMS
from otel_mcp_resume.rules import terms
from otel_mcp_resume.settings import Settings
from tests.fuzz.client import HostileServer
from tests.fuzz.corpus import CONTENT, Corpus
from tests.fuzz.server import HostileClient
from tests.sdk.server_apps import high_level_app
from tests.wire.driven.event_store import make_store

__all__ = ["Findings", "attack"]

MAX_STREAMS, MAX_EVENTS = 200, 2000
LONGEST = 1100
"""Characters of an attribute: what is shown of an id is bounded."""
SESSION_TURNS = 200
"""Requests after which the hostile client begins another session."""


class Findings(SpanProcessor, logging.Handler):
    """Looks at every span and record, and at the numbers in the end."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.wrong: list[str] = []
        self.spans = self.records = 0

    def on_end(self, span: ReadableSpan) -> None:
        self.spans += 1
        self._look(
            "span",
            [*(span.attributes or {}).values(), *(v for e in span.events for v in (e.attributes or {}).values())],
        )

    def emit(self, record: logging.LogRecord) -> None:
        self.records += 1
        if record.getMessage().startswith("otel-mcp-resume failed"):
            self.wrong.append(f"a fault: {record.exc_info}")
        self._look("record", [value for value in vars(record).values() if isinstance(value, str)])

    def _look(self, where: str, values: list[Any]) -> None:
        for value in values:
            if CONTENT in str(value):
                self.wrong.append(f"content in a {where}: {str(value)[:200]}")
            if where == "span" and len(str(value)) > LONGEST:
                self.wrong.append(f"{len(str(value))} characters in a {where}")

    def numbers(self, plugin: Plugin) -> None:
        """Every label of every series."""
        known = set(vocabulary(plugin))
        for family in plugin.metrics.collect():
            for sample in family.samples:
                if sample.name == "mcp_resume_internal_errors_total" and sample.value:
                    self.wrong.append(f"{sample.value:g} internal errors in {sample.labels}")
                for label, value in sample.labels.items():
                    if label != "le" and value not in known:
                        self.wrong.append(f"an unknown value of the label {label}: {value[:100]!r}")
        self.memory(plugin)

    def memory(self, plugin: Plugin) -> None:
        """What is remembered, at any time."""
        client, server = plugin.runtime.client, plugin.runtime.server
        if client.memory.size > MAX_EVENTS or len(client.streams) > MAX_STREAMS:
            self.wrong.append(f"the client remembers {client.memory.size} events and {len(client.streams)} streams")
        streams, events = server.remembered
        if streams > MAX_STREAMS or events > MAX_EVENTS:
            self.wrong.append(f"the server remembers {server.remembered}")


def vocabulary(plugin: Plugin) -> Iterator[str]:
    """Everything that a label may say."""
    for kind in vars(terms).values():
        if isinstance(kind, type) and issubclass(kind, str):
            yield from map(str, getattr(kind, "__members__", {}).values())
    yield from INTERNAL_HOOKS
    yield from plugin.hooks
    for family in plugin.metrics.collect():
        if family.name == "mcp_resume_info":
            yield from (value for sample in family.samples for value in sample.labels.values())


@contextlib.contextmanager
def _plugged(findings: Findings, ids: str) -> Iterator[Plugin]:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(findings)
    settings = Settings(metrics=frozenset(), proof_timeout=0.2, max_streams=MAX_STREAMS, max_events=MAX_EVENTS, ids=ids)
    plugin = Plugin(settings, Providers(tracer_provider=provider))
    logger = logging.getLogger("otel_mcp_resume")
    logger.addHandler(findings)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
    for room in ROOMS:
        plugin.open(room)
    try:
        yield plugin
    finally:
        plugin.close()
        logger.removeHandler(findings)


async def _client_side(plugin: Plugin, corpus: Corpus, inputs: int, findings: Findings) -> int:
    peer = HostileServer(plugin, corpus)
    while peer.answers < inputs:
        try:
            await peer.conversation()
            findings.memory(plugin)
        except Exception:  # noqa: BLE001 - the finding that this is about
            findings.wrong.append(traceback.format_exc())
            break
    return peer.answers


async def _server_side(plugin: Plugin, corpus: Corpus, inputs: int, findings: Findings) -> int:
    requests = 0
    while requests < inputs:
        app = high_level_app(event_store=make_store({"ids": "global-int"})())
        async with app.router.lifespan_context(app):
            peer = HostileClient(app, corpus)
            while peer.requests < min(SESSION_TURNS, inputs - requests):
                if peer.requests % 40 == 0:
                    await peer.opens()
                try:
                    await peer.asks()
                except Exception:  # noqa: BLE001 - ours, or else the SDK's own
                    if "otel_mcp_resume" in traceback.format_exc().splitlines()[-2]:
                        findings.wrong.append(traceback.format_exc())
            findings.memory(plugin)
            requests += peer.requests
    return requests


def attack(client: int, server: int, seed: int, ids: str = "raw") -> Findings:
    """That many inputs of each kind."""
    findings = Findings()
    began = time.monotonic()
    with warnings.catch_warnings(), _plugged(findings, ids) as plugin:
        warnings.simplefilter("ignore")
        corpus = Corpus(Random(seed))
        answers = asyncio.run(_client_side(plugin, corpus, client, findings))
        requests = asyncio.run(_server_side(plugin, corpus, server, findings))
        findings.numbers(plugin)
    print(
        f"{answers} answers to the client and {requests} requests to the server in {time.monotonic() - began:.0f} s:"
        f" {findings.spans} spans, {findings.records} records, {len(findings.wrong)} wrong",
        flush=True,
    )
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--server-part", type=int, default=4, metavar="N", help="each N-th of them goes to the server")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--turns", type=int, default=10, help="plugins, one after the other, each with a seed of its own"
    )
    options = parser.parse_args()
    wrong: list[str] = []
    for turn in range(options.turns):
        each = options.inputs // options.turns
        to_server = each // options.server_part
        wrong += attack(each - to_server, to_server, options.seed + turn, ("raw", "hash", "none")[turn % 3]).wrong
    print("\n".join(dict.fromkeys(text[:1500] for text in wrong)) or "nothing wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

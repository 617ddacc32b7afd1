"""10,000 resumptions while the exporter of traces hangs, raises or is slow: the application does not notice."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from .traced import World

RESUMPTIONS = 10_000
QUEUE = 512
"""Spans that wait to be exported. What is beyond is dropped."""


class Exporter(SpanExporter):
    """Does what it is told to."""

    def __init__(self, way: str) -> None:
        self.way = way
        self.batches = 0
        self.released = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.batches += 1
        if self.way == "hangs":
            self.released.wait()
        elif self.way == "slow":
            self.released.wait(0.2)
        elif self.way == "raises":
            raise OSError("no route to the collector")
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.released.set()


class Run:
    """One application, and what came of it."""

    def __init__(self, way: str) -> None:
        self.exporter = Exporter(way)
        self.world = World()
        provider = TracerProvider(shutdown_on_exit=False)
        self._processor: Any = BatchSpanProcessor(
            self.exporter, max_queue_size=QUEUE, max_export_batch_size=64, schedule_delay_millis=20
        )
        provider.add_span_processor(self._processor)
        self.world.provider = provider
        self.answers: list[bool] = []

    def play(self) -> float:
        """Seconds of the application's own thread, not of the machine."""
        world = self.world
        world.initialize()
        stream = world.standalone()
        started = time.thread_time()
        connection = world.open(stream)
        for number in range(RESUMPTIONS):
            world.feed(connection, str(number))
            world.end(connection)
            connection = world.open(stream, token=str(number), named=None if number % 10 else "S1")
            self.answers.append(connection.closed)
        return time.thread_time() - started

    def close(self) -> None:
        self.exporter.released.set()
        self._processor.shutdown()
        self.world.deadlines.close()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The SDK logs every failed export with its stack, as it should."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def numbers(world: World) -> dict[Any, float]:
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in world.metrics.collect()
        for sample in family.samples
        if not sample.name.endswith(("_sum", "_bucket"))
    }


def spans_in_memory() -> int:
    gc.collect()
    return sum(isinstance(each, ReadableSpan) for each in gc.get_objects())


@pytest.mark.once
@pytest.mark.timeout(180)
def test_neither_time_nor_results_nor_memory_change() -> None:
    before = spans_in_memory()
    well = Run("works")
    seconds = well.play()
    expected = numbers(well.world)
    well.close()
    key = ("mcp_resume_attempts_total", *_proven())
    assert expected[key] > RESUMPTIONS - 2
    del well
    for way in ("hangs", "raises", "slow"):
        run = Run(way)
        took = run.play()
        assert numbers(run.world) == expected
        assert run.exporter.batches > 0
        assert spans_in_memory() - before < 2 * QUEUE
        assert took < 3 * seconds  # the same work: generous, since the machine may do other things
        run.close()
        del run


def _proven() -> list[tuple[str, str]]:
    labels = {
        "side": "client",
        "generation": "streamable_http",
        "previous_generation": "streamable_http",
        "stream": "standalone",
        "outcome": "proven",
        "reason": "replayed_event",
    }
    return sorted(labels.items())

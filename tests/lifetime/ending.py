"""The interpreter ends while streams are open: `python -m tests.lifetime.ending HOW [plugin]`.

thread  the loop runs in a daemon thread, which the interpreter stops wherever it is
exit    `SystemExit` in the loop: asyncio cancels what is open
left    the loop stops, and everything in it is collected as it is

Prints when the end began, in seconds since the epoch.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import time
import warnings

warnings.simplefilter("ignore")
logging.disable()

from opentelemetry.sdk.trace import TracerProvider  # noqa: E402 - warnings of libraries are not what this is about
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult  # noqa: E402 - see above

from otel_mcp_resume import activate  # noqa: E402 - see above
from tests.lifetime.pair import pair  # noqa: E402 - see above


class Nowhere(SpanExporter):
    """Takes spans."""

    def export(self, spans: object) -> SpanExportResult:
        return SpanExportResult.SUCCESS


async def play(opened: threading.Event, *, leaves: bool) -> None:
    """A call that hangs on its resumed stream, beside the standalone one."""
    hanging = asyncio.Event()

    async def hang(moment: str) -> None:
        if moment == "resumed":
            hanging.set()
            await asyncio.Event().wait()

    async with pair() as both:
        both.reached = hang
        call = asyncio.create_task(both.call("one"))
        await hanging.wait()
        opened.set()
        print(time.time(), flush=True)
        if leaves:
            raise SystemExit(3)
        await call


def main() -> None:
    how, *rest = sys.argv[1:]
    if rest:
        spans = TracerProvider()
        spans.add_span_processor(BatchSpanProcessor(Nowhere()))
        assert activate.instrument(tracer_provider=spans)
        plugin = activate.current()
        assert plugin is not None
        assert plugin.exporter.url
    opened = threading.Event()
    if how == "exit":
        with contextlib.suppress(BaseException):  # within a group of the SDK's
            asyncio.run(play(opened, leaves=True))
    elif how == "left":
        loop = asyncio.new_event_loop()
        loop.create_task(play(opened, leaves=False)).add_done_callback(lambda _: loop.stop())
        loop.run_until_complete(loop.run_in_executor(None, opened.wait, 60))
    else:
        threading.Thread(target=asyncio.run, args=(play(opened, leaves=False),), daemon=True).start()
    assert opened.wait(60)
    sys.exit(3)


if __name__ == "__main__":
    main()

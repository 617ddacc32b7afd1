"""Other instrumentations in the same process, in either order of activation: theirs work, and ours."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Environment

pytestmark = [pytest.mark.once, pytest.mark.timeout(400), pytest.mark.xdist_group("neighbours")]

PLAY = """
import asyncio, json, socket, sys, threading, time
import uvicorn

if ORDER == 'before':
    import otel_mcp_resume
    assert otel_mcp_resume.instrument()
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
spans = InMemorySpanExporter()

def theirs():
    global sent
    sent = []
    if NEIGHBOUR == 'logfire':
        import logfire
        logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[SimpleSpanProcessor(spans)])
        logfire.instrument_mcp()
        logfire.instrument_httpx()
        return
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    if NEIGHBOUR == 'sentry':
        import sentry_sdk
        from sentry_sdk.transport import Transport
        class Kept(Transport):
            def capture_envelope(self, envelope):
                sent.append(envelope)
        sentry_sdk.init(dsn='http://a@127.0.0.1:1/1', transport=Kept, traces_sample_rate=1.0)
    elif NEIGHBOUR == 'openinference':
        global MCPInstrumentor
        from openinference.instrumentation.mcp import MCPInstrumentor
        MCPInstrumentor().instrument()
    else:
        from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
        from opentelemetry.instrumentation.starlette import StarletteInstrumentor
        HTTPXClientInstrumentor().instrument()
        StarletteInstrumentor().instrument()

theirs()
if ORDER == 'after':
    import otel_mcp_resume
    assert otel_mcp_resume.instrument()

from otel_mcp_resume import activate
from otel_mcp_resume.cli.demo.sdk import client_session, http_app, result_text
from otel_mcp_resume.cli.demo.stores import EventLog
import itertools

async def rows(ctx, count: int) -> str:
    for number in range(count):
        await ctx.info(f'row {number}')
    await ctx.close_sse_stream()
    await ctx.info('later')
    return 'done'
from otel_mcp_resume.cli.demo.sdk import Context
rows.__annotations__ = {'ctx': Context, 'count': int, 'return': str}

async def main():
    app = http_app([rows], event_store=EventLog(itertools.count(1)), retry_interval=50)
    listener = socket.create_server(('127.0.0.1', 0))
    service = uvicorn.Server(uvicorn.Config(app, log_level='critical', timeout_graceful_shutdown=1))
    task = asyncio.create_task(service.serve(sockets=[listener]))
    while not service.started:
        await asyncio.sleep(0.01)
    noted = []
    async def note(params):
        noted.append(params.data)
    async with client_session(f'http://127.0.0.1:{listener.getsockname()[1]}/mcp', logging_callback=note) as session:
        assert result_text(await session.call_tool('rows', {'count': 2})) == 'done'
    service.should_exit = True
    await task
    assert sorted(noted) == ['later', 'row 0', 'row 1'], noted

asyncio.run(asyncio.wait_for(main(), 60))
plugin = activate.current()
samples = [s for family in plugin.metrics.collect() for s in family.samples]
attempts = [s for s in samples if s.name == 'mcp_resume_attempts_total' and s.value]
assert {s.labels['side'] for s in attempts if s.labels['outcome'] == 'proven'} == {'client', 'server'}, attempts
assert not [s for s in samples if s.name == 'mcp_resume_internal_errors_total' and s.value]
assert all(plugin.hooks.values()), plugin.hooks
scopes = {span.instrumentation_scope.name for span in spans.get_finished_spans()}
if NEIGHBOUR == 'sentry':
    import sentry_sdk
    sentry_sdk.capture_message('theirs')
    sentry_sdk.flush()
    assert sent
elif NEIGHBOUR == 'openinference':  # it makes no spans: it carries the context of others
    assert 'otel_mcp_resume' in scopes, scopes
    assert MCPInstrumentor().is_instrumented_by_opentelemetry
else:
    assert 'otel_mcp_resume' in scopes, scopes
    assert scopes - {'otel_mcp_resume', 'mcp-python-sdk'}, scopes
otel_mcp_resume.uninstrument()
print('both work', sorted(scopes))
"""


@pytest.fixture(scope="module")
def crowded(uv: Callable[..., None], wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """A fresh virtual environment with all of them."""
    home = tmp_path_factory.mktemp("crowded") / "env"
    uv("venv", "--quiet", "--python", sys.executable, home)
    python = home / "bin" / "python"
    neighbours = ["logfire[httpx,starlette]", "sentry-sdk", "openinference-instrumentation-mcp"]
    neighbours += ["opentelemetry-instrumentation-starlette", "opentelemetry-distro"]
    uv("pip", "install", "--quiet", "--python", python, "mcp<3", "uvicorn", *neighbours, wheel)
    yield Environment(python)
    shutil.rmtree(home, ignore_errors=True)


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("neighbour", ["httpx+starlette", "openinference", "sentry", "logfire"])
def test_both_work(crowded: Environment, neighbour: str, order: str) -> None:
    run = crowded.run(f"NEIGHBOUR, ORDER = {neighbour!r}, {order!r}\n{PLAY}", "-W", "ignore")
    assert run.returncode == 0, run.stderr[-3000:]
    assert "both work" in run.stdout

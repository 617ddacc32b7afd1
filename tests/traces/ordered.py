"""Run in a process of its own: an application that instruments its HTTP client with its own hooks, before or after us.

`python ordered.py ORDER URL` prints the HTTP spans of one session, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.metadata import version
from typing import Any

from opentelemetry.instrumentation import httpx as instrumentation
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

import otel_mcp_resume


async def on_request(span: Any, request: Any) -> None:
    span.set_attribute("app.request", request.method.decode())


async def on_response(span: Any, _: Any, response: Any) -> None:
    span.set_attribute("app.status", response.status_code)


def main(order: str, url: str) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    name = "HTTPXClientInstrumentor" if version("mcp").startswith("1.") else "HTTPX2ClientInstrumentor"
    theirs: Any = getattr(instrumentation, name)()
    hooks = {"async_request_hook": on_request, "async_response_hook": on_response}

    def ours() -> None:
        otel_mcp_resume.instrument(tracer_provider=provider)

    def instrument() -> None:
        theirs.instrument(tracer_provider=provider, **hooks)

    steps = {"ours": ours, "theirs": instrument}
    for step in order.split(","):
        if step == "mcp":
            import mcp.client.streamable_http  # noqa: F401 - that is the step
        else:
            steps[step]()
    asyncio.run(session(url, provider))
    spans = [span for span in exporter.get_finished_spans() if span.kind is SpanKind.CLIENT]
    spans = [span for span in spans if not span.name.startswith("MCP send")]
    applications = next(span for span in exporter.get_finished_spans() if span.name == "application")
    print(json.dumps([dict(span.attributes or {}) for span in (*spans, applications)]))


async def session(url: str, provider: TracerProvider) -> None:
    from otel_mcp_resume.cli.demo.sdk import client_session

    with provider.get_tracer("application").start_as_current_span("application"):
        async with client_session(url) as opened:
            await opened.list_tools()


main(*sys.argv[1:])

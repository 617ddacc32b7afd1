"""The names of spans, records and their attributes, from the table of names.

`mcp.*`, `jsonrpc.*`, `http.*`, `server.*` and `network.*` are those of the OpenTelemetry semantic
conventions; `mcp.resume.*` are our own.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ATTEMPT_RECORD",
    "ATTRIBUTES",
    "IDENTIFIERS",
    "LOGGER",
    "PLUGIN_LOGGER",
    "SCOPE",
    "SPAN_RESUME",
    "SPAN_SESSION",
    "SPAN_STREAM",
    "VIOLATION_RECORD",
]

SCOPE: Final = "otel_mcp_resume"
LOGGER: Final = "otel_mcp_resume"
"""Verdicts. Nothing may ask for this logger before the first record: an application that configures logging later, with
`disable_existing_loggers` as it is by default, would silence it."""
PLUGIN_LOGGER: Final = "otel_mcp_resume.plugin"
"""What the plugin has to say about itself: a taken port, a bad variable, a fault of its own."""

SPAN_RESUME: Final = "mcp.resume"
SPAN_STREAM: Final = "mcp.stream"
SPAN_SESSION: Final = "mcp.session"
SPAN_EVENT: Final = "sse.event"

ATTEMPT_RECORD: Final = "mcp_resume.attempt"
VIOLATION_RECORD: Final = "mcp_resume.violation"
TRACE_ID: Final = "trace_id"
SPAN_ID: Final = "span_id"

MCP_SESSION_ID: Final = "mcp.session.id"
MCP_PROTOCOL_VERSION: Final = "mcp.protocol.version"
MCP_METHOD_NAME: Final = "mcp.method.name"
JSONRPC_REQUEST_ID: Final = "jsonrpc.request.id"
HTTP_RESPONSE_STATUS_CODE: Final = "http.response.status_code"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
NETWORK_TRANSPORT: Final = "network.transport"

SIDE: Final = "mcp.resume.side"
GENERATION: Final = "mcp.resume.generation"
PREVIOUS_GENERATION: Final = "mcp.resume.previous_generation"
STREAM: Final = "mcp.resume.stream"
OUTCOME: Final = "mcp.resume.outcome"
REASON: Final = "mcp.resume.reason"
RULE: Final = "mcp.resume.rule"
TOKEN: Final = "mcp.resume.token"
EVENT_ID: Final = "mcp.resume.event_id"
FIRST_EVENT_ID: Final = "mcp.resume.first_event_id"
LAST_EVENT_ID: Final = "mcp.resume.last_event_id"
PREVIOUS_SESSION_ID: Final = "mcp.resume.previous_session_id"
EVENTS: Final = "mcp.resume.events"
MISSED_EVENTS: Final = "mcp.resume.missed_events"
DOWNTIME: Final = "mcp.resume.downtime"
"""Seconds."""

ATTRIBUTES: Final = (
    MCP_SESSION_ID,
    MCP_PROTOCOL_VERSION,
    MCP_METHOD_NAME,
    JSONRPC_REQUEST_ID,
    HTTP_RESPONSE_STATUS_CODE,
    SERVER_ADDRESS,
    SERVER_PORT,
    NETWORK_TRANSPORT,
    SIDE,
    GENERATION,
    PREVIOUS_GENERATION,
    STREAM,
    OUTCOME,
    REASON,
    RULE,
    TOKEN,
    EVENT_ID,
    FIRST_EVENT_ID,
    LAST_EVENT_ID,
    PREVIOUS_SESSION_ID,
    EVENTS,
    MISSED_EVENTS,
    DOWNTIME,
)

IDENTIFIERS: Final = (MCP_SESSION_ID, PREVIOUS_SESSION_ID, TOKEN, EVENT_ID, FIRST_EVENT_ID, LAST_EVENT_ID)
"""The ones that `OTEL_MCP_RESUME_IDS` hashes or leaves out."""

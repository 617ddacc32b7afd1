"""Facts as attributes, the same for spans and records. What is unknown is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

from otel_mcp_resume.report import fields
from otel_mcp_resume.report.ids import Ids, printable
from otel_mcp_resume.rules.terms import Generation

if TYPE_CHECKING:
    from otel_mcp_resume.watch.facts import AttemptSettled, Context, Violated

__all__ = ["Attributes", "Value", "of_attempt", "of_context", "of_violation"]

Value = Union[str, int, float]
Attributes = dict[str, Value]

_TRANSPORT = "tcp"
"""Every generation runs over HTTP."""


def of_attempt(fact: AttemptSettled, ids: Ids) -> Attributes:
    """The attributes of an attempt, what it came to first."""
    return _known(
        {
            fields.OUTCOME: str(fact.outcome),
            fields.REASON: str(fact.reason),
            fields.SIDE: str(fact.side),
            fields.GENERATION: str(fact.generation),
            fields.PREVIOUS_GENERATION: str(fact.previous_generation),
            fields.STREAM: str(fact.stream),
            **of_context(fact.context, fact.generation, ids),
            fields.PREVIOUS_SESSION_ID: ids(fact.previous_session_id),
            fields.TOKEN: ids(fact.token),
            fields.FIRST_EVENT_ID: ids(fact.first_event_id),
            fields.LAST_EVENT_ID: ids(fact.last_event_id),
            fields.EVENTS: fact.events,
            fields.MISSED_EVENTS: fact.missed_events,
            fields.DOWNTIME: None if fact.downtime is None else round(fact.downtime, 6),  # no clock is better
        }
    )


def of_violation(fact: Violated, ids: Ids) -> Attributes:
    """The attributes of a violation, the broken rule first."""
    return _known(
        {
            fields.RULE: str(fact.rule),
            fields.SIDE: str(fact.side),
            fields.GENERATION: str(fact.generation),
            fields.STREAM: None if fact.stream is None else str(fact.stream),
            **of_context(fact.context, fact.generation, ids),
            fields.TOKEN: ids(fact.token),
        }
    )


def of_context(context: Context, generation: Generation, ids: Ids) -> Attributes:
    """The attributes of an exchange. A `stateless` one has no session, whatever was sent along."""
    session = None if generation is Generation.STATELESS else context.session_id
    return _known(
        {
            fields.MCP_SESSION_ID: ids(session),
            fields.MCP_PROTOCOL_VERSION: _text(context.protocol_version),
            fields.MCP_METHOD_NAME: _text(context.method),
            fields.JSONRPC_REQUEST_ID: _text(context.request_id),
            fields.HTTP_RESPONSE_STATUS_CODE: context.status_code,
            fields.SERVER_ADDRESS: _text(context.server_address),
            fields.SERVER_PORT: context.server_port,
            fields.NETWORK_TRANSPORT: _TRANSPORT,
        }
    )


def _text(text: str | None) -> str | None:
    return None if text is None else printable(text)


def _known(attributes: dict[str, Value | None]) -> Attributes:
    return {name: value for name, value in attributes.items() if value is not None}

"""What the head of a request says, and how its exchange ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from otel_mcp_resume.records import record

__all__ = ["End", "Request"]


@record
class Request:
    """What the head of a request says."""

    method: str
    session_id: str | None = None
    """What `Mcp-Session-Id` names. Nobody has checked it."""
    token: str | None = None
    """What `Last-Event-ID` names, if it is not empty."""
    protocol_version: str | None = None
    rpc_method: str | None = None
    """The JSON-RPC method, where a header names it."""
    peer: Sequence[str] = ()
    """What tells this client and what it asks from others: its credential, its address, the path. Goes into digests
    only."""
    server_address: str | None = None
    server_port: int | None = None
    carrier: Mapping[str, str] | None = None
    """The headers, in which the trace context of the peer may be."""


@record
class End:
    """How the application ended an exchange."""

    finished: bool = False
    """The body was ended in good order."""
    left: bool = False
    """The peer was gone before that."""
    cancelled: bool = False
    """The task that served it was cancelled."""

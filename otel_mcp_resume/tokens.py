"""Tokens that outlive their process, bound to the session that they belong to.

An application that persists a bare token and shows it after a restart resumes in whatever session it then has: `5` is
valid in every one. What it should persist is a cursor.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from otel_mcp_resume.activate import current
from otel_mcp_resume.rules.cursor import StreamCursor
from otel_mcp_resume.watch.cursors import ANYWHERE, Received

__all__ = ["bind", "recall"]


def bind(token: str) -> StreamCursor | None:
    """The cursor of a token that was received in this process: what to persist in place of the token.

    Its `endpoint` is scheme, host and port. None if the token is unknown, or the plugin is not on. Never raises for a
    token of any shape.
    """
    plugin = current()
    known = plugin.runtime.client.binding(token) if plugin is not None and token else None
    if known is None:
        return None
    origin, received = known
    return StreamCursor(received.session_id, token, received.stream, received.generation, origin or None)


def recall(cursor: StreamCursor) -> bool:
    """Registers a cursor of an earlier process, so that the next use of its token is judged against its session.

    Whether anybody will judge: False if the plugin is not on. Without `endpoint` the cursor counts for every server.
    """
    plugin = current()
    if plugin is None:
        return False
    origin = ANYWHERE
    if cursor.endpoint is not None:
        parts = urlsplit(cursor.endpoint)
        origin = f"{parts.scheme}://{parts.netloc}".lower()
    received = Received(cursor.session_id, cursor.generation, cursor.stream, recalled=True)
    plugin.runtime.client.recall(origin, str(cursor.last_event_id), received)
    return True

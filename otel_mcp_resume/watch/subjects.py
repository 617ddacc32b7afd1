"""What a message of a server means beyond its place in the stream. Most are notifications, and mean nothing more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from otel_mcp_resume.watch.facts import Fact
    from otel_mcp_resume.watch.server_connection import ServerConnection

__all__ = ["ANSWER", "PRIMING", "UNWANTED", "Answer", "Subject"]


class Subject:
    """Told what becomes of its message. Its owner holds the lock of the watch."""

    __slots__ = ()

    def written(self, exchange: ServerConnection) -> Sequence[Fact]:  # noqa: ARG002 - for those that look at it
        """The message left through `exchange`."""
        return ()

    def lost(self) -> Sequence[Fact]:
        """The message can no longer reach the client."""
        return ()


class Answer(Subject):
    """A response."""

    __slots__ = ()

    def written(self, exchange: ServerConnection) -> Sequence[Fact]:
        """The exchange has carried what it was opened for."""
        exchange.is_answered = True
        return ()


PRIMING = Subject()
"""An event that has an id and no payload: a position in the stream, not a message."""
ANSWER = Answer()
"""The response to anything but a tool call."""
UNWANTED = Answer()
"""The response to a request that the client has cancelled: nothing is lost with it."""

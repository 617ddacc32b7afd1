"""What the decision boundary returns: frozen values that say what to write on a reconnected stream."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar, Union

__all__ = ["LogStats", "LoggedEvent", "RequestId", "Resumption", "ResumptionKind"]

T = TypeVar("T")

RequestId = Union[int, str]
"""A JSON-RPC id. `1` and `"1"` are the same: there are clients that send back the one for the other."""


class ResumptionKind(str, Enum):
    """What a reconnect asks for."""

    STREAM = "stream"
    """To go on with one stream, behind the token."""
    SESSION = "session"
    """To go on with the session, on a fresh stream."""

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class LoggedEvent(Generic[T]):
    """What to write: `id: <event_id>`, and the payload, which is the very object that was given to the log."""

    event_id: str
    payload: T


@dataclass(frozen=True, slots=True)
class Resumption(Generic[T]):
    """What to do with a reconnect: write `events` in order, then whatever `resume(session_id, position)` brings."""

    kind: ResumptionKind
    session_id: str
    stream: str
    """The stream to go on with. A fresh one has a name that begins with `~`."""
    start: str
    """The token as presented. On a fresh stream an id before its first event: write it as a priming event (an `id`
    without data), and a client that is cut before it received anything still has a token of this stream."""
    events: tuple[LoggedEvent[T], ...]
    """Stream resumption: all that follows the token. Session resumption: the server requests to deliver again."""
    finished: bool
    """Nothing will ever follow `events`: end the response after them."""

    @property
    def position(self) -> str:
        """The token of a client that has received `events`."""
        return self.events[-1].event_id if self.events else self.start


@dataclass(frozen=True, slots=True)
class LogStats:
    """What a log holds now, and what it has evicted so far (what was closed or unregistered is not in that)."""

    sessions: int
    streams: int
    events: int
    pending: int
    evicted_sessions: int
    evicted_streams: int
    evicted_events: int

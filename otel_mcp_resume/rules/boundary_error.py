"""Why a reconnect is refused: one problem each, told apart, with what the server should answer.

Statuses: MCP 2025-11-25, "Session Management": 400 where the session id is missing, 404 where it is not known (a client
that gets 404 starts a new session). A bad token is 400, because 404 would end a session that is in order, and 410
may be kept by caches. The JSON-RPC codes are those of the TypeScript SDK.
"""

from __future__ import annotations

from enum import Enum

__all__ = ["ResumptionBoundaryError", "ResumptionProblem"]


class ResumptionProblem(str, Enum):
    """What is wrong with a reconnect. The value is what a client is told in `error.data.problem`."""

    NO_SESSION = "no_session"
    """Neither a session nor a token."""
    ORPHAN_TOKEN = "orphan_token"
    """A token without a session."""
    UNKNOWN_SESSION = "unknown_session"
    """A session that was never registered, has ended, or was evicted."""
    FOREIGN_SESSION_TOKEN = "foreign_session_token"
    """A token that was issued in another session of this log."""
    FOREIGN_STREAM_TOKEN = "foreign_stream_token"
    """A token of this session, but of another stream than the caller asked to resume."""
    UNKNOWN_TOKEN = "unknown_token"
    """A token that this session never issued: made up, of another process, or of one before a restart."""
    EVICTED = "evicted"
    """A token or a stream of this session of whose events some that followed are no longer kept."""

    def __str__(self) -> str:
        return str(self.value)


_ADVICE: dict[ResumptionProblem, tuple[int, int, str]] = {
    ResumptionProblem.NO_SESSION: (
        400,
        -32000,
        "neither a session id nor an event id was presented: answer 400 and require initialize",
    ),
    ResumptionProblem.ORPHAN_TOKEN: (
        400,
        -32000,
        "an event id without a session id means nothing: answer 400 and replay nothing",
    ),
    ResumptionProblem.UNKNOWN_SESSION: (
        404,
        -32001,
        "the session is not known, or has ended: answer 404, so that the client initializes a new one",
    ),
    ResumptionProblem.FOREIGN_SESSION_TOKEN: (
        400,
        -32000,
        "the event id belongs to another session: answer 400 and replay nothing",
    ),
    ResumptionProblem.FOREIGN_STREAM_TOKEN: (
        400,
        -32000,
        "the event id belongs to another stream of the session: answer 400 and replay nothing",
    ),
    ResumptionProblem.UNKNOWN_TOKEN: (
        400,
        -32000,
        "the event id was never issued in this session: answer 400 and replay nothing",
    ),
    ResumptionProblem.EVICTED: (
        400,
        -32000,
        "what followed on this stream is no longer kept, so it can't be resumed: answer 400 and replay nothing",
    ),
}


class ResumptionBoundaryError(RuntimeError):
    """A reconnect that must not be served. Nothing was replayed, and nothing was changed.

    The message names the problem and what to answer. It holds neither the session id nor the token, so it may be
    logged and sent to the client.
    """

    def __init__(
        self, problem: ResumptionProblem, *, session_id: str | None = None, last_event_id: str | None = None
    ) -> None:
        self.problem = problem
        self.status, self.code, message = _ADVICE[problem]
        self.session_id = session_id
        """As it was presented; None if none was."""
        self.last_event_id = last_event_id
        """As it was presented; None if none was."""
        super().__init__(message)

    def as_json_rpc(self) -> dict[str, object]:
        """The body of the answer: a JSON-RPC error response without an id, for the HTTP status `self.status`."""
        error = {"code": self.code, "message": str(self), "data": {"problem": str(self.problem)}}
        return {"jsonrpc": "2.0", "id": None, "error": error}

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.problem, self.session_id, self.last_event_id)


def _rebuild(
    kind: type[ResumptionBoundaryError], problem: ResumptionProblem, session_id: str | None, last_event_id: str | None
) -> ResumptionBoundaryError:
    return kind(problem, session_id=session_id, last_event_id=last_event_id)

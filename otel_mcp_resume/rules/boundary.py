"""The server's decision boundary: what a reconnect asks for, and what a server may answer.

| `Mcp-Session-Id` | `Last-Event-ID` | is | the server should |
|---|---|---|---|
| present | of this session | stream resumption | replay what follows, on that stream only; touch no session state |
| present | absent | session resumption | open a fresh stream, replay nothing, deliver unanswered requests again |
| present | not of this session | - | reject, distinguishably |
| absent | present | orphan token | reject: an event id means nothing without its session |
| absent | absent | no session | require `initialize` |

It is for servers of your own (protocol revisions 2025-03-26 to 2025-11-25; later ones have nothing to resume).
A server keeps one log, appends to it before it writes, and writes only what it gets from it:

>>> log: StreamEventLog[str] = StreamEventLog()
>>> log.register_session("S1")                           # `initialize` was answered with `Mcp-Session-Id: S1`
>>> first = log.append("S1", "request:7", "progress 1")  # to write: `id: <first>`, `data: progress 1`
>>> _ = log.append("S1", "request:7", "progress 2")      # the connection was cut: nobody reads this
>>> _ = log.append("S1", "request:7", "result", last=True)
>>> _ = log.queue_server_request("S1", "ask-1", "elicitation/create")  # no stream is there to carry it

A GET arrives. Its two headers decide:

>>> def on_get(session_id, last_event_id):
...     try:
...         resumption = handle_reconnect(log, session_id, last_event_id)
...     except ResumptionBoundaryError as error:
...         return error.status, error.problem.value     # the body: error.as_json_rpc()
...     return 200, resumption.kind.value, [event.payload for event in resumption.events]
>>> on_get("S1", first)
(200, 'stream', ['progress 2', 'result'])
>>> on_get("S1", None)
(200, 'session', ['elicitation/create'])
>>> on_get("S1", "5")
(400, 'unknown_token')
>>> on_get(None, first)
(400, 'orphan_token')
>>> on_get("S2", first)
(404, 'unknown_session')
>>> on_get(None, None)
(400, 'no_session')

A response to a server request arrives by POST, and that request is never delivered again:

>>> log.mark_answered("S1", "ask-1")
True
>>> on_get("S1", None)
(200, 'session', [])

Then the stream is live. The way that loses nothing between replay and live is to have no border there: one loop
writes what the log has after `position`, and waits until something was appended (an `asyncio.Event` that the
server sets after each append, cleared before the log is asked):

>>> def write(resumption, send):
...     while True:
...         for event in resumption.events:
...             send(event)
...         if resumption.finished:
...             return
...         resumption = log.resume(resumption.session_id, resumption.position)  # here: wait first
>>> write(handle_reconnect(log, "S1", first), lambda event: print(event.payload))
progress 2
result

Two duties stay with the server. It calls `deliver_queued` when a stream that may carry server requests is
connected again, because a stream resumption does not touch them. And it lets no second connection read a stream
that is still connected (409), but passes the streams that are as `connected` to a session resumption.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from otel_mcp_resume.rules.boundary_error import ResumptionBoundaryError, ResumptionProblem
from otel_mcp_resume.rules.event_log import PendingRequestLimitError, StreamEventLog
from otel_mcp_resume.rules.resumption import LoggedEvent, LogStats, RequestId, Resumption, ResumptionKind

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = [
    "LogStats",
    "LoggedEvent",
    "PendingRequestLimitError",
    "RequestId",
    "Resumption",
    "ResumptionBoundaryError",
    "ResumptionKind",
    "ResumptionProblem",
    "StreamEventLog",
    "handle_reconnect",
]

T = TypeVar("T")


def handle_reconnect(
    log: StreamEventLog[T],
    session_id: str | None,
    last_event_id: str | None,
    *,
    stream: str | None = None,
    connected: Collection[str] = (),
) -> Resumption[T]:
    """Decides what a GET with these two headers is, and what to write on its stream. Fails closed.

    An empty header is an absent one: an empty `Last-Event-ID` is how SSE says "none".

    - `session_id`, `last_event_id`: the headers `Mcp-Session-Id` and `Last-Event-ID`, None if absent.
    - `stream`: the stream that the request asks for, where the server knows that by other means than the token.
    - `connected`: the streams of the session that are connected now. The server requests that they carry stay there
      in a session resumption; all others that are unanswered come again.

    A stream resumption may be repeated with the same token: it brings the same again, and changes nothing but the
    order of eviction. A session resumption opens another fresh stream each time.

    Raises ResumptionBoundaryError, whose `problem` tells the cases apart and whose `status` is the answer:
    `no_session`, `orphan_token`, `foreign_session_token`, `foreign_stream_token`, `unknown_token`, `evicted` (400),
    `unknown_session` (404). Whether a token that nobody can place was evicted is known while its session lives.
    """
    if session_id:
        return log.resume(session_id, last_event_id, stream=stream, connected=connected)
    problem = ResumptionProblem.ORPHAN_TOKEN if last_event_id else ResumptionProblem.NO_SESSION
    raise ResumptionBoundaryError(problem, last_event_id=last_event_id or None)

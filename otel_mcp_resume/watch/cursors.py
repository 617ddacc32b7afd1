"""Tokens that outlive their stream: which session, stream and generation a token was received under.

A client that resumes by itself never needs this. It is for tokens that an application kept and shows again,
over another client object or another transport of the same process.
"""

from __future__ import annotations

from collections import OrderedDict

from otel_mcp_resume.records import record
from otel_mcp_resume.rules.terms import Generation, Stream
from otel_mcp_resume.watch.seen import short_key

__all__ = ["ANYWHERE", "CursorMemory", "Received"]


@record
class Received:
    """What a token was received under."""

    session_id: str | None
    generation: Generation
    stream: Stream
    request_id: str | None = None
    """The JSON-RPC id, as JSON text, of the request that the stream belongs to."""
    recalled: bool = False
    """The application says so; it was in an earlier process."""


ANYWHERE = ""
"""The origin of a token whose endpoint is unknown."""


class CursorMemory:
    """The last tokens of streams that are over, and the sessions that this process itself initialised."""

    SAME_TOKEN = 8
    """Small ids are valid in every session; of one token this many bindings are kept."""

    def __init__(self, limit: int) -> None:
        self._limit = max(1, limit)
        self._received: OrderedDict[tuple[str, str | int], list[Received]] = OrderedDict()
        self._initialised: OrderedDict[tuple[str, str], None] = OrderedDict()
        self.evicted = 0
        """Tokens dropped since the owner last looked and set it back."""

    def initialised(self, origin: str, session_id: str) -> None:
        """A session began in this process, so each token of it is received by this process too."""
        self._initialised[origin, session_id] = None
        if len(self._initialised) > self._limit:
            self._initialised.popitem(last=False)

    def keep(self, origin: str, key: str | int, received: Received) -> None:
        """Remembers what a token was received under; `key` is its `short_key`."""
        bindings = self._received.setdefault((origin, key), [])
        self._received.move_to_end((origin, key))
        if received in bindings:
            bindings.remove(received)
        bindings.append(received)
        del bindings[: -self.SAME_TOKEN]
        if len(self._received) > self._limit:
            self._received.popitem(last=False)
            self.evicted += 1

    def find(self, origin: str, token: str, sent_session_id: str | None) -> Received | None:
        """What a token that is shown under `sent_session_id` is bound to; None if this process doesn't know.

        One received under that very session is meant. Otherwise it can only be another session's token if the
        session it is shown under began here, since then this process would have received it: a session that began
        in an earlier process may have tokens of its own that look the same.
        """
        bindings = self.bindings(origin, token)
        for received in reversed(bindings):
            if received.session_id == sent_session_id:
                return received
        sessions = {received.session_id for received in bindings}
        began_here = sent_session_id is None or (origin, sent_session_id) in self._initialised
        certain = began_here or any(received.recalled for received in bindings)
        return bindings[-1] if len(sessions) == 1 and certain else None

    def bindings(self, origin: str, token: str) -> list[Received]:
        """All that is known of a token, the last one last. Some were recalled for any endpoint."""
        key = short_key(token)
        return [*self._received.get((ANYWHERE, key), ()), *self._received.get((origin, key), ())]

    def everywhere(self, token: str) -> tuple[str, Received] | None:
        """The last one to receive a token, and where; None if nobody did."""
        key = short_key(token)
        for (origin, known), bindings in reversed(self._received.items()):
            if known == key:
                return origin, bindings[-1]
        return None

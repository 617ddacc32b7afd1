"""The closed vocabularies: every value that may become a label.

Sources: the MCP transport specification (revisions 2024-11-05 to 2026-07-28) for generations and
streams; the other enumerations are this project's own.
"""

from __future__ import annotations

from enum import Enum

__all__ = [
    "Disconnect",
    "DuplicateKind",
    "Generation",
    "Outcome",
    "Reason",
    "Side",
    "Stream",
    "UndeliveredCause",
    "ViolationRule",
]


class _Term(str, Enum):
    """A string with a closed set of values; it prints as its value, so it can be a label as it is."""

    def __str__(self) -> str:
        return str(self.value)


class Side(_Term):
    """Where an observation was made."""

    CLIENT = "client"
    SERVER = "server"


class Generation(_Term):
    """The transport generation of a session."""

    SSE = "sse"
    """HTTP+SSE, protocol revision 2024-11-05."""
    STREAMABLE_HTTP = "streamable_http"
    """Revisions 2025-03-26, 2025-06-18 and 2025-11-25."""
    STATELESS = "stateless"
    """Revision 2026-07-28 and later: no session, no event id, no resumption."""


class Stream(_Term):
    """The kind of a logical stream, which may span several connections."""

    STANDALONE = "standalone"
    REQUEST = "request"
    SESSION = "session"
    LISTEN = "listen"


class Outcome(_Term):
    """How an attempt settled. Every attempt settles once."""

    PROVEN = "proven"
    UNPROVEN = "unproven"
    GAP = "gap"
    REJECTED = "rejected"
    FAILED = "failed"
    ABANDONED = "abandoned"


class Reason(_Term):
    """Why an attempt settled the way it did."""

    REPLAYED_EVENT = "replayed_event"
    PRIMING_EVENT = "priming_event"
    RESPONSE_MATCHED = "response_matched"
    MARKER = "marker"
    REPLAY_COMPLETE = "replay_complete"
    NOTHING_OWED = "nothing_owed"

    NO_REPLAY = "no_replay"
    RECONNECT_LOOP = "reconnect_loop"
    INCOMPARABLE_EVENT_ID = "incomparable_event_id"
    HEARTBEAT_ONLY = "heartbeat_only"
    TOKEN_NOT_PRESENTED = "token_not_presented"
    NO_EVENT_IDS = "no_event_ids"
    GENERATION_CHANGED = "generation_changed"
    NOT_RESUMABLE = "not_resumable"
    NO_EVENT_STORE = "no_event_store"
    LEDGER_EVICTED = "ledger_evicted"

    SESSION_CHANGED = "session_changed"
    EVENT_ID_REGRESSION = "event_id_regression"
    EVENT_ID_COLLISION = "event_id_collision"
    FOREIGN_RESPONSE = "foreign_response"
    UNKNOWN_TOKEN_ACCEPTED = "unknown_token_accepted"
    ORPHAN_TOKEN_ACCEPTED = "orphan_token_accepted"
    CROSS_SESSION_REPLAY = "cross_session_replay"
    CROSS_STREAM_REPLAY = "cross_stream_replay"
    REPLAY_WITHOUT_TOKEN = "replay_without_token"
    UNDELIVERED = "undelivered"

    SESSION_NOT_FOUND = "session_not_found"
    BAD_REQUEST = "bad_request"
    STREAM_CONFLICT = "stream_conflict"
    NOT_SUPPORTED = "not_supported"
    UNAUTHORIZED = "unauthorized"
    OTHER_4XX = "other_4xx"

    NETWORK_ERROR = "network_error"
    SERVER_ERROR = "server_error"
    NOT_EVENT_STREAM = "not_event_stream"

    RETRIES_EXHAUSTED = "retries_exhausted"
    NEVER_OPENED = "never_opened"
    NO_TOKEN = "no_token"


class ViolationRule(_Term):
    """A breach of the boundary between streams, sessions and calls."""

    STALE_SESSION = "stale_session"
    DUPLICATE_CALL = "duplicate_call"
    PENDING_REQUEST_LOST = "pending_request_lost"
    PENDING_REQUEST_REPEATED = "pending_request_repeated"
    CROSS_SESSION_REPLAY = "cross_session_replay"
    CROSS_STREAM_REPLAY = "cross_stream_replay"
    REPLAY_WITHOUT_TOKEN = "replay_without_token"
    UNKNOWN_TOKEN_ACCEPTED = "unknown_token_accepted"
    ORPHAN_TOKEN_ACCEPTED = "orphan_token_accepted"
    FOREIGN_RESPONSE = "foreign_response"
    EVENT_ID_COLLISION = "event_id_collision"


class UndeliveredCause(_Term):
    """Why a message can no longer reach the client."""

    SKIPPED = "skipped"
    NO_STREAM = "no_stream"
    SESSION_ENDED = "session_ended"


class DuplicateKind(_Term):
    """What a second appearance of an event id brought."""

    REDELIVERED = "redelivered"
    COLLISION = "collision"


class Disconnect(_Term):
    """How an SSE connection ended.

    `completed`: it carried what it was opened for. `closed`: it was ended in good order before that.
    `reset`: the network broke it. `cancelled`: this side gave it up.
    """

    COMPLETED = "completed"
    CLOSED = "closed"
    RESET = "reset"
    CANCELLED = "cancelled"

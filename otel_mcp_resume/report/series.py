"""Which series exist at 0 before anything happens.

A scrape that sees a counter for the first time at 1 has missed the increment: `increase()` over it is 0 and
no alert fires. So every series that can come into being is there from the start, one side at a time.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

from otel_mcp_resume.report import names
from otel_mcp_resume.report.names import MetricName
from otel_mcp_resume.rules.terms import (
    Disconnect,
    DuplicateKind,
    Generation,
    Outcome,
    Reason,
    Side,
    Stream,
    UndeliveredCause,
    ViolationRule,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["INTERNAL_HOOKS", "REASONS", "RULES", "STREAMS", "Series", "zero_series"]

Series = tuple[MetricName, tuple[str, ...]]
"""A metric and its label values, in the order of its label names."""

STREAMS: Final[dict[Generation, tuple[Stream, ...]]] = {
    Generation.SSE: (Stream.SESSION,),
    Generation.STREAMABLE_HTTP: (Stream.STANDALONE, Stream.REQUEST),
    Generation.STATELESS: (Stream.REQUEST, Stream.LISTEN),
}
"""The streams that a generation has."""

SESSIONS: Final = (Generation.SSE, Generation.STREAMABLE_HTTP)
"""The generations that know sessions, and with them requests of the server to the client."""

_REJECTED: Final = (
    Reason.SESSION_NOT_FOUND,
    Reason.BAD_REQUEST,
    Reason.STREAM_CONFLICT,
    Reason.NOT_SUPPORTED,
    Reason.UNAUTHORIZED,
    Reason.OTHER_4XX,
)

REASONS: Final[dict[Side, dict[Outcome, tuple[Reason, ...]]]] = {
    Side.CLIENT: {
        Outcome.PROVEN: (Reason.REPLAYED_EVENT, Reason.PRIMING_EVENT, Reason.RESPONSE_MATCHED),
        Outcome.UNPROVEN: (
            Reason.NO_REPLAY,
            Reason.RECONNECT_LOOP,
            Reason.INCOMPARABLE_EVENT_ID,
            Reason.HEARTBEAT_ONLY,
            Reason.TOKEN_NOT_PRESENTED,
            Reason.NO_EVENT_IDS,
            Reason.GENERATION_CHANGED,
            Reason.NOT_RESUMABLE,
        ),
        Outcome.GAP: (
            Reason.SESSION_CHANGED,
            Reason.EVENT_ID_REGRESSION,
            Reason.EVENT_ID_COLLISION,
            Reason.FOREIGN_RESPONSE,
        ),
        Outcome.REJECTED: _REJECTED,
        Outcome.FAILED: (Reason.NETWORK_ERROR, Reason.SERVER_ERROR, Reason.NOT_EVENT_STREAM),
        Outcome.ABANDONED: (Reason.RETRIES_EXHAUSTED, Reason.NEVER_OPENED, Reason.NO_TOKEN),
    },
    Side.SERVER: {
        Outcome.PROVEN: (Reason.REPLAY_COMPLETE, Reason.NOTHING_OWED),
        Outcome.UNPROVEN: (Reason.NO_EVENT_STORE, Reason.LEDGER_EVICTED, Reason.NOT_RESUMABLE),
        Outcome.GAP: (
            Reason.SESSION_CHANGED,
            Reason.UNKNOWN_TOKEN_ACCEPTED,
            Reason.ORPHAN_TOKEN_ACCEPTED,
            Reason.CROSS_SESSION_REPLAY,
            Reason.CROSS_STREAM_REPLAY,
            Reason.REPLAY_WITHOUT_TOKEN,
            Reason.UNDELIVERED,
        ),
        Outcome.REJECTED: _REJECTED,
        Outcome.FAILED: (Reason.SERVER_ERROR,),
    },
}
"""The outcomes and reasons that each side can come to. `marker` is reserved and never reported."""

RULES: Final[dict[Side, tuple[ViolationRule, ...]]] = {
    Side.CLIENT: (
        ViolationRule.STALE_SESSION,
        ViolationRule.DUPLICATE_CALL,
        ViolationRule.FOREIGN_RESPONSE,
        ViolationRule.EVENT_ID_COLLISION,
    ),
    Side.SERVER: (
        ViolationRule.DUPLICATE_CALL,
        ViolationRule.PENDING_REQUEST_LOST,
        ViolationRule.PENDING_REQUEST_REPEATED,
        ViolationRule.CROSS_SESSION_REPLAY,
        ViolationRule.CROSS_STREAM_REPLAY,
        ViolationRule.REPLAY_WITHOUT_TOKEN,
        ViolationRule.UNKNOWN_TOKEN_ACCEPTED,
        ViolationRule.ORPHAN_TOKEN_ACCEPTED,
    ),
}
"""The breaches that each side can see."""

INTERNAL_HOOKS: Final = ("activate", "deadlines", "exporter", "report.log", "report.metrics", "report.spans")
"""The places outside the patches where a fault of ours is counted."""

_ONLY_ON: Final[dict[Reason, Stream]] = {
    Reason.RESPONSE_MATCHED: Stream.REQUEST,
    Reason.FOREIGN_RESPONSE: Stream.REQUEST,
    Reason.NO_TOKEN: Stream.REQUEST,
    Reason.NEVER_OPENED: Stream.STANDALONE,
}

_ACROSS_GENERATIONS: Final = (Outcome.GAP, Outcome.UNPROVEN)
"""An alert watches these where `previous_generation` differs from `generation`: an unsafe migration."""


def zero_series(side: Side) -> Iterator[Series]:
    """Every series of `side` that must exist at 0, each once."""
    yield from _attempts(side)
    for generation, streams in STREAMS.items():
        for rule in RULES[side]:
            yield names.VIOLATIONS, (side, generation, rule)
        for stream in streams:
            yield from _stream(side, generation, stream)
    for generation in SESSIONS:
        yield names.OPEN_SESSIONS, (side, generation)
        if side is Side.SERVER:
            yield names.PENDING, (generation,)
            yield names.OLDEST_PENDING, (generation,)
    for outcome in REASONS[side]:
        yield names.VERDICT, (side, outcome)
    yield names.EVICTIONS, (side,)


def _stream(side: Side, generation: Generation, stream: Stream) -> Iterator[Series]:
    here = (side, generation, stream)
    yield names.EVENTS, here
    yield names.OPEN_STREAMS, here
    yield names.DOWNTIME, here
    for kind in DuplicateKind:
        yield names.DUPLICATES, (*here, kind)
    for end in Disconnect:
        yield names.DISCONNECTS, (*here, end)
    if side is Side.SERVER:
        for cause in UndeliveredCause:
            yield names.UNDELIVERED, (generation, stream, cause)


def _attempts(side: Side) -> Iterator[Series]:
    for outcome, reasons in REASONS[side].items():
        for (generation, streams), previous, reason in product(STREAMS.items(), Generation, reasons):
            if previous is not generation and outcome not in _ACROSS_GENERATIONS:
                continue
            for stream in streams:
                if _ONLY_ON.get(reason, stream) is stream:
                    yield names.ATTEMPTS, (side, generation, previous, stream, outcome, reason)

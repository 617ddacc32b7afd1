"""Which cases an SDK version can play at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .cases import Case

__all__ = ["LIMITS", "Limit", "unplayable"]


class Limit(NamedTuple):
    """What these cases need is not in versions of `mcp` before `since`."""

    since: tuple[int, ...]
    reason: str
    cases: frozenset[str]


LIMITS: tuple[Limit, ...] = ()


def unplayable(case: Case, mcp: tuple[int, ...]) -> str | None:
    """Why this version can't play the case; None if it can."""
    if mcp[0] not in case.sdk:
        return f"not for SDK generation {mcp[0]}"
    name = case.name.partition("/")[2]
    for limit in LIMITS:
        if mcp < limit.since and name in limit.cases:
            return limit.reason
    return None

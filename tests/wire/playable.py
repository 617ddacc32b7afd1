"""Which cases an SDK version can play at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .bounds import Bound
from .driven.steps import Json, one_entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from .cases import Case

__all__ = ["LIMITS", "Limit", "unplayable"]


class Limit(NamedTuple):
    """What some cases need is not in versions of `mcp` before `since`, of which each line may have one."""

    since: tuple[tuple[int, ...], ...]
    reason: str
    needed_by: Callable[[Case], bool]

    def excludes(self, mcp: tuple[int, ...]) -> bool:
        return any(mcp[0] == since[0] and mcp < since for since in self.since)


def unplayable(case: Case, mcp: tuple[int, ...]) -> str | None:
    """Why this version can't play the case; None if it can."""
    if mcp[0] not in case.sdk:
        return f"not for SDK generation {mcp[0]}"
    return next((limit.reason for limit in LIMITS if limit.excludes(mcp) and limit.needed_by(case)), None)


def _opens_again_by_itself(case: Case) -> bool:
    """A token is asked for that the application doesn't bring, or more GETs than one."""
    if case.instrumented != "client":
        return False
    sessions: list[Json] = case.section("client")
    server: Json = case.section("server") or {}
    rules: list[Json] = server.get("rules", [])
    brings_token = any("Last-Event-ID" in session.get("headers", {}) for session in sessions) or any(
        "token" in argument
        for session in sessions
        for action, argument in map(one_entry, session["steps"])
        if action == "call"
    )
    wanted = [*(rule["when"] for rule in rules), *case.wire]
    return (not brings_token and any(_has_token(each) for each in wanted)) or any(
        _is_repeated_get(w) for w in case.wire
    )


def _has_token(wanted: Json) -> bool:
    return bool(wanted.get("token")) or "last-event-id" in wanted.get("headers", {})


def _is_repeated_get(wanted: Json) -> bool:
    return (
        wanted.get("method") == "GET"
        and wanted.get("path") != "/sse"
        and Bound.parse(wanted.get("count", ">=1")).least > 1
    )


def _needs_priming(case: Case) -> bool:
    """Events of a call are counted one by one where an event store would prime its stream, or a priming is wanted."""
    if case.instrumented != "server":
        return False
    steps = [one_entry(step) for step in case.section("steps")]
    calls = {argument.get("as") for action, argument in steps if action == "call"}
    stored = "store" in (case.section("server") or {})
    older = any("protocol" in argument for action, argument in steps if action == "initialize")
    counted = any("events" in argument and argument["from"] in calls for action, argument in steps if action == "read")
    return any(check.get("primings") for check in case.wire) or (stored and counted and not older)


def _shows_unknown_session(case: Case) -> bool:
    return case.name == "healthy/token-of-gone-session"


def _redirects_elsewhere(case: Case) -> bool:
    return case.name == "positive/resume-redirected-away"


LIMITS = (
    Limit(((1, 23),), "before mcp 1.23 a client opens no stream again by itself", _opens_again_by_itself),
    Limit(((1, 23),), "before mcp 1.23 a server sends no priming events", _needs_priming),
    Limit(((1, 26),), "before mcp 1.26 a server answers an unknown session with 400", _shows_unknown_session),
    Limit(
        ((1, 30), (2, 2)),
        "before mcp 1.30 and 2.2 a client follows a redirect to wherever it leads",
        _redirects_elsewhere,
    ),
)

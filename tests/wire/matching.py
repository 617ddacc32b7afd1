"""Requests as the scripted server sees them, and the rules that match them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .bounds import without
from .cases import CaseError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .driven.steps import Json

__all__ = ["Request", "Rule"]


@dataclass
class Request:
    """One request as the scripted server saw it."""

    method: str
    path: str
    headers: dict[str, str]
    rpc: Json
    status: int | None = None

    @property
    def rpc_method(self) -> str | None:
        return self.rpc.get("method")

    def field(self, key: str) -> Any:
        """What a rule or a wire check may ask for."""
        values: Json = {
            "method": self.method,
            "path": self.path.partition("?")[0],
            "rpc": self.rpc_method,
            "token": self.headers.get("last-event-id"),
            "session": self.headers.get("mcp-session-id"),
            "status": self.status,
        }
        if key not in values:
            raise CaseError(f"unknown request field {key!r}")
        return values[key]

    def __str__(self) -> str:
        shown = {key: self.field(key) for key in ("rpc", "session", "token") if self.field(key)}
        return " ".join([self.method, self.path, *(f"{k}={v:.80}" for k, v in shown.items()), f"-> {self.status}"])

    def matches(self, wanted: Mapping[str, Any]) -> bool:
        headers: Mapping[str, str | bool] = wanted.get("headers", {})
        return all(self.field(key) == value for key, value in wanted.items() if key != "headers") and all(
            _header_matches(self.headers.get(name.lower()), value) for name, value in headers.items()
        )


def _header_matches(actual: str | None, wanted: Any) -> bool:
    """`true` asks for presence, `false` for absence, a string for equality."""
    return (actual is not None) == wanted if isinstance(wanted, bool) else actual == str(wanted)


@dataclass
class Rule:
    """Answers the requests that match. `nth` counts the requests that match its other conditions."""

    when: Json
    respond: Json
    seen: int = 0

    def takes(self, request: Request) -> bool:
        if not request.matches(without(self.when, "nth")):
            return False
        self.seen += 1
        nth = self.when.get("nth")
        if nth is None:
            return True
        return self.seen >= int(nth[:-1]) if str(nth).endswith("+") else self.seen == int(nth)

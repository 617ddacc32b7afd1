"""What the proxy saw of each exchange, in the words of a table."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Exchange", "WireLog"]


@dataclass
class Exchange:
    """One request and what came back, as read off the sockets."""

    number: int
    method: str
    call: str = ""
    """JSON-RPC method of a POST, and the tool that it calls."""
    token: str | None = None
    session: str | None = None
    """Whose id the client sent."""
    status: int | None = None
    answered_session: str | None = None
    is_stream: bool = False
    ids: list[str] = field(default_factory=list)
    messages: int = 0
    primings: int = 0
    end: str = "open"
    """`open`, `over`, or who cut it."""


class WireLog:
    """All exchanges of a scene, in the order of their requests."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []

    def begin(self, method: str, headers: dict[str, str], body: bytes) -> Exchange:
        exchange = Exchange(
            len(self.exchanges) + 1,
            method,
            _call(body),
            headers.get("last-event-id"),
            headers.get("mcp-session-id"),
        )
        self.exchanges.append(exchange)
        return exchange

    def find(self, method: str, call: str = "", **fields: Any) -> list[Exchange]:
        return [
            each
            for each in self.exchanges
            if each.method == method and each.call == call and all(getattr(each, k) == v for k, v in fields.items())
        ]

    def resumptions(self) -> list[Exchange]:
        return [each for each in self.exchanges if each.token is not None]

    def lines(self, *, telling: bool = False) -> list[str]:
        """One line an exchange, or only for those on which the verdicts rest: GETs, and what was cut or refused.

        Sessions and tokens are named after where they come from: both are random.
        """
        sessions: dict[str, str] = {}
        origin: dict[str, int] = {}
        for each in self.exchanges:
            for session in (each.session, each.answered_session):
                if session is not None:
                    sessions.setdefault(session, f"S{len(sessions) + 1}")
            for event_id in each.ids:
                origin.setdefault(event_id, each.number)
        chosen = [each for each in self.exchanges if not telling or _is_telling(each)]
        return [self._line(each, sessions, origin) for each in chosen]

    def _line(self, each: Exchange, sessions: dict[str, str], origin: dict[str, int]) -> str:
        asked = [each.method, each.call, sessions.get(each.session or "", "no session")]
        if each.token is not None:
            asked.append(f"Last-Event-ID from #{origin.get(each.token, '?')}")
        answer = ["no answer" if each.status is None else str(each.status)]
        if each.answered_session is not None:
            answer.append(sessions[each.answered_session])
        if each.is_stream:
            count = f"{each.messages} message{'' if each.messages == 1 else 's'}"
            answer += [*(["priming"] if each.primings else []), f"{count} {'with' if each.ids else 'without'} ids"]
        if each.end not in ("open", "over"):
            answer.append(each.end)
        return f"#{each.number} {' '.join(filter(None, asked[:2]))}, {', '.join(asked[2:])} → {', '.join(answer)}"


def read_event(exchange: Exchange, block: str) -> None:
    """Notes one SSE block."""
    fields = [line.partition(":")[::2] for line in block.splitlines()]
    ids = [value.strip() for name, value in fields if name == "id"]
    exchange.ids += ids
    if any(name == "data" and value.strip() for name, value in fields):
        exchange.messages += 1
    elif ids:
        exchange.primings += 1


def _is_telling(exchange: Exchange) -> bool:
    return (
        exchange.method != "POST"
        or exchange.call == "subscriptions/listen"
        or exchange.end == "cut"
        or (exchange.status or 0) >= 400
    )


def _call(body: bytes) -> str:
    if not body:
        return ""
    message = json.loads(body)
    if not isinstance(message, dict) or "method" not in message:
        return "answer"
    method: str = message["method"]
    tool = message.get("params", {}).get("name") if method == "tools/call" else None
    return f"{method} {tool}" if tool else method

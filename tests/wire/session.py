"""What the scripted client remembers of an MCP session, and how it asks under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .driven.steps import HOST
from .ordinary import LEGACY_PROTOCOL, MODERN_PROTOCOL

if TYPE_CHECKING:
    from .driven.steps import Json

__all__ = ["Session"]

META_PREFIX = "io.modelcontextprotocol/"


@dataclass
class Session:
    """One session: its id, its protocol revision, and where its messages go."""

    protocol: str = LEGACY_PROTOCOL
    sid: str | None = None
    path: str = "/mcp"
    next_id: int = 0

    def take_id(self) -> int:
        self.next_id += 1
        return self.next_id

    @property
    def modern(self) -> bool:
        return self.protocol >= MODERN_PROTOCOL

    def body(self, message: Json) -> Json:
        """Adds the envelope that a 2026-07-28 request carries instead of a session."""
        if not self.modern:
            return message
        params: Json = dict(message.get("params") or {})
        meta: Json = {
            **params.get("_meta", {}),
            f"{META_PREFIX}protocolVersion": self.protocol,
            f"{META_PREFIX}clientCapabilities": {},
        }
        return {**message, "params": {**params, "_meta": meta}}

    def headers(self, port: int, body: Json | None, length: int, token: str | None) -> dict[str, str]:
        """The headers of a request with this body, which has that many bytes."""
        headers = {
            "Host": f"{HOST}:{port}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "Content-Length": str(length),
        }
        method = (body or {}).get("method")
        if self.sid:
            headers["Mcp-Session-Id"] = self.sid
        if method != "initialize":
            headers["Mcp-Protocol-Version"] = self.protocol
        if self.modern and body is not None:
            headers |= {"Mcp-Method": str(method), "Mcp-Name": body["params"].get("name", "")}
        if token:
            headers["Last-Event-ID"] = token
        return headers

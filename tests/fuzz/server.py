"""A server whose client is hostile: the SDK's own application, called with whatever the corpus says."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz.corpus import CONTENT, NAME, Corpus
from tests.sdk.server_side import PROTOCOL

__all__ = ["HostileClient"]

ACCEPT = (b"accept", b"application/json, text/event-stream")
JSON = (b"content-type", b"application/json")
HEADERS = ("last-event-id", "mcp-protocol-version", "authorization", "x-forwarded-for", "traceparent", "mcp-method")
LIMIT = 10.0


@dataclass
class HostileClient:
    """Asks as it likes, in the same process; counts its requests."""

    app: Any
    corpus: Corpus
    requests: int = 0
    sessions: list[bytes] = field(default_factory=list[bytes])
    tokens: list[bytes] = field(default_factory=list[bytes])

    async def opens(self) -> None:
        """A session with an ordinary handshake, for the rest to be about."""
        params = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": NAME, "version": "0"}}
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        await self._ask("POST", [ACCEPT, JSON], json.dumps(body).encode())

    async def asks(self) -> None:
        """One request of any shape."""
        pick = self.corpus.random
        headers = [ACCEPT, JSON] if pick.random() < 0.9 else self.corpus.headers("accept", "content-type")
        if self.sessions and pick.random() < 0.8:
            headers.append((b"mcp-session-id", pick.choice(self.sessions)))
        else:
            headers += self.corpus.headers("mcp-session-id")
        if self.tokens and pick.random() < 0.4:
            headers.append((b"last-event-id", pick.choice(self.tokens)))
        if pick.random() < 0.5:
            headers += self.corpus.headers(*pick.sample(HEADERS, 2))
        body = self._call() if pick.random() < 0.4 else self.corpus.message().encode("utf-8", "replace")
        method = pick.choice(("POST", "POST", "POST", "GET", "GET", "PUT", "OPTIONS", "DELETE"))
        if method == "DELETE" and pick.random() < 0.8:
            method = "GET"
        await self._ask(method, headers, body)

    def _call(self) -> bytes:
        pick = self.corpus.random
        script = pick.choice(([], [{"emit": 2}], [{"announce": 2}], [{"progress": 1}], [CONTENT]))
        params = {"name": "play", "arguments": {"script": script}, "_meta": {"progressToken": self.corpus.name()}}
        call = {
            "jsonrpc": "2.0",
            "id": pick.choice((1, "1", self.corpus.name())),
            "method": "tools/call",
            "params": params,
        }
        return json.dumps(call).encode()

    async def _ask(self, method: str, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.requests += 1
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "root_path": "",
            "headers": [(b"host", b"127.0.0.1:1"), *((name.lower(), value) for name, value in headers)],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 1),
        }
        asked = False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": body, "more_body": False}
            await asyncio.sleep(0.002)
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            for name, value in message.get("headers", ()):
                if name.lower() == b"mcp-session-id" and value not in self.sessions:
                    self.sessions.append(value)
                    del self.sessions[:-5]
            if message.get("body", b"").startswith(b"id: "):
                self.tokens.append(message["body"][4:].split(b"\r")[0].split(b"\n")[0])
                del self.tokens[:-10]

        await asyncio.wait_for(self.app(scope, receive, send), LIMIT)

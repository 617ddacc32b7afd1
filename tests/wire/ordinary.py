"""An ordinary healthy server: what the scripted one says where its case has no rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .driven.steps import Json
    from .matching import Request

__all__ = ["LEGACY_PROTOCOL", "MODERN_PROTOCOL", "OLDER_PROTOCOL", "default_response", "result_for", "tool_result"]

LEGACY_PROTOCOL = "2025-11-25"
OLDER_PROTOCOL = "2025-06-18"
MODERN_PROTOCOL = "2026-07-28"

SERVER_INFO: Json = {"name": "scripted", "version": "0"}


def default_response(request: Request, protocol: str, session: str | None) -> Json:
    """The `respond` of a server that offers no standalone stream and answers in JSON."""
    if request.method == "GET":
        return {"status": 405}
    if request.method == "DELETE":
        return {"status": 200}
    if "id" not in request.rpc or "method" not in request.rpc or request.path.startswith("/messages"):
        return {"status": 202}
    if result_for(request, protocol) is None:
        return {"json": {"error": {"code": -32601, "message": "no such method"}}, "status": 404}
    opens_session = request.rpc_method == "initialize" and session
    return {"answer": True, "headers": {"Mcp-Session-Id": session} if opens_session else {}}


def result_for(request: Request, protocol: str) -> Json | None:
    """The JSON-RPC result; None for a method that this server doesn't know."""
    results: Json = {
        "initialize": {"protocolVersion": protocol, "capabilities": {"tools": {}}, "serverInfo": SERVER_INFO},
        "tools/list": _cacheable({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
        "tools/call": tool_result("ok"),
    }
    if protocol == MODERN_PROTOCOL:
        capabilities: Json = {"tools": {"listChanged": True}}
        about: Json = {"supportedVersions": [protocol], "capabilities": capabilities, "serverInfo": SERVER_INFO}
        results["server/discover"] = _cacheable(about)
    return results.get(request.rpc_method or "")


def _cacheable(result: Json) -> Json:
    return {**result, "resultType": "complete", "ttlMs": 0, "cacheScope": "public"}


def tool_result(text: str) -> Json:
    return {"content": [{"type": "text", "text": text}], "isError": False, "resultType": "complete"}

"""What the application does with an open session: the steps of a client case."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .steps import Json, one_entry, sdk_is_modern

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Application"]


@dataclass
class Application:
    """Plays the steps of one session. `api` is a `ClientSession`, or a `Client` of the 2.x line."""

    api: Any
    calls: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    async def play(self, steps: Sequence[str | Json]) -> None:
        for step in steps:
            action, argument = one_entry(step)
            await getattr(self, f"do_{action}")(argument)

    async def do_initialize(self, _: Any) -> None:
        await self.api.initialize()

    async def do_sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def do_call(self, arg: Json) -> None:
        """Calls a tool and waits up to `wait` seconds; an unanswered call stays in flight."""
        task = asyncio.ensure_future(self._call(arg))
        self.calls.append(task)
        await asyncio.wait({task}, timeout=arg.get("wait", 3))

    async def do_cancel(self, _: Any) -> None:
        """Gives up every call in flight, the way each SDK generation tells its server."""
        pending = [task for task in self.calls if not task.done()]
        if not sdk_is_modern():
            await _cancel_by_notification(self.api)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    async def do_listen(self, arg: Json) -> None:
        """Follows a 2026-07-28 subscription until it is lost or ends, at most `wait` seconds."""
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._follow(), arg.get("wait", 3))

    async def _follow(self) -> None:
        async with self.api.listen(tools_list_changed=True) as subscription:
            async for _ in subscription:
                pass

    async def _call(self, arg: Json) -> None:
        name, arguments = arg.get("tool", "t"), arg.get("arguments", {})
        with contextlib.suppress(Exception):
            if "token" in arg:
                await _resume_call(self.api, name, arguments, arg["token"])
            else:
                await self.api.call_tool(name, arguments)


async def _cancel_by_notification(session: Any) -> None:
    """1.x sends no cancellation by itself when a call is abandoned."""
    types = importlib.import_module("mcp.types")
    params = types.CancelledNotificationParams(requestId=session._request_id - 1)
    notification = types.CancelledNotification(method="notifications/cancelled", params=params)
    await session.send_notification(types.ClientNotification(notification))


async def _resume_call(session: Any, name: str, arguments: Json, token: str) -> None:
    """Resumes a call of an earlier process from a stored token."""
    types = importlib.import_module("mcp.types")
    metadata = importlib.import_module("mcp.shared.message").ClientMessageMetadata(resumption_token=token)
    params = types.CallToolRequestParams(name=name, arguments=arguments)
    request = types.CallToolRequest(method="tools/call", params=params)
    if not sdk_is_modern():
        request = types.ClientRequest(request)
    await session.send_request(request, types.CallToolResult, metadata=metadata)

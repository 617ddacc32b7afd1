"""The one tool of the test server: its argument is a script."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any

from .steps import Json, one_entry

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["play_script"]


async def play_script(context: Any, script: Sequence[str | Json]) -> str:
    """Runs the script of a tool call.

    emit: N     notifications of this request, `every` seconds; their text starts with `as`
    announce: N the same for the session, which belong on the standalone stream
    progress: N progress of this request
    sleep: S    does nothing
    hang_up     closes this request's SSE connection and goes on
    ask: own    a sampling request on this request's stream; `ask: session` on the standalone one
    """
    for step in script:
        action, argument = one_entry(step)
        pause: float = step.get("every", 0) if isinstance(step, dict) else 0
        if action in ("emit", "announce"):
            own = {"related_request_id": context.request_id} if action == "emit" else {}
            name = step.get("as", action) if isinstance(step, dict) else action
            for number in range(argument):
                await context.session.send_log_message("info", f"{name} {number}", **own)
                await asyncio.sleep(pause)
        elif action == "progress":
            for number in range(argument):
                await context.report_progress(number, argument)
                await asyncio.sleep(pause)
        elif action == "sleep":
            await asyncio.sleep(argument)
        elif action == "hang_up":
            await context.close_sse_stream()
        elif action == "ask":
            await _ask_client(context, own=argument == "own")
        else:
            raise ValueError(action)
    return "played"


async def _ask_client(context: Any, *, own: bool) -> None:
    types = importlib.import_module("mcp.types")
    question = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="proceed?"))
    related = {"related_request_id": context.request_id} if own else {}
    await context.session.create_message(messages=[question], max_tokens=8, **related)

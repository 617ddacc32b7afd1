"""Which module of `mcp` calls for which hooks, and how its import is noticed, whenever that is.

A new transport is one more line in `ROOMS`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import ModuleType

import wrapt

from otel_mcp_resume.rules.terms import Side

__all__ = ["ROOMS", "Room", "visit_imported", "watch_imports"]


@dataclass(frozen=True, slots=True)
class Room:
    """One module of `otel_mcp_resume.sdk` and what it waits for."""

    side: Side
    hooks: str
    """Module with `install(runtime)` and `HOOKS`, the names of the hooks that it tries with this version of `mcp`."""
    module: str
    """The module of `mcp` that must be complete: the last one of those that are hooked into."""


ROOMS = (
    Room(Side.CLIENT, "otel_mcp_resume.sdk.client", "mcp.client.streamable_http"),
    Room(Side.CLIENT, "otel_mcp_resume.sdk.client_sse", "mcp.client.sse"),
    Room(Side.CLIENT, "otel_mcp_resume.sdk.client_listen", "mcp.client.session"),
    Room(Side.SERVER, "otel_mcp_resume.sdk.server", "mcp.server.streamable_http_manager"),
    Room(Side.SERVER, "otel_mcp_resume.sdk.server_sse", "mcp.server.sse"),
    Room(Side.SERVER, "otel_mcp_resume.sdk.server_listen", "mcp.server"),
)
"""From 1.12 to 2.3, `import mcp` alone imports all of these modules. Subscriptions are in 2.x only: their rooms wait
for modules that 1.x has as well, and find nothing there."""

Opened = Callable[[Room], None]


def watch_imports(opened: Opened) -> None:
    """Calls `opened(room)` as soon as what a room waits for is imported, at once if it is. `opened` must not raise.

    To be called once in a process: a registration can't be taken back.
    """
    for room in ROOMS:
        wrapt.register_post_import_hook(partial(_imported, room, opened), room.module)


def visit_imported(opened: Opened) -> None:
    """Calls `opened(room)` for each room whose module is imported already. `opened` must not raise."""
    for room in ROOMS:
        if (module := sys.modules.get(room.module)) is not None:
            _imported(room, opened, module)


def _imported(room: Room, opened: Opened, module: ModuleType) -> None:
    try:
        for name in (module.__name__.partition(".")[0], module.__name__):
            import_module(name)  # waits, should another thread be in the middle of it
        opened(room)
    except Exception:  # noqa: BLE001, S110 - it would fail the application's import; `opened` has reported its own faults
        pass

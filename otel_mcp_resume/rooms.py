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

__all__ = ["ROOMS", "Room", "is_imported", "watch_imports"]


@dataclass(frozen=True, slots=True)
class Room:
    """One module of `otel_mcp_resume.sdk` and what it waits for."""

    side: Side
    hooks: str
    """Module with `install(runtime)` and `HOOKS`, the names of all hooks that it tries."""
    modules: tuple[str, ...]
    """Modules of `mcp`. The import of any one opens the room."""


PACKAGE = "mcp"

ROOMS = (
    Room(Side.CLIENT, "otel_mcp_resume.sdk.client", ("mcp.client.streamable_http",)),
    Room(Side.CLIENT, "otel_mcp_resume.sdk.client_sse", ("mcp.client.sse",)),
    Room(
        Side.SERVER,
        "otel_mcp_resume.sdk.server",
        ("mcp.server.streamable_http", "mcp.server.streamable_http_manager"),
    ),
)

Opened = Callable[[Room], None]


def watch_imports(opened: Opened) -> None:
    """Calls `opened(room)` for each module of a room, at once if it is imported already. `opened` must not raise.

    To be called once in a process: a registration can't be taken back.
    """
    for room in ROOMS:
        for name in room.modules:
            wrapt.register_post_import_hook(partial(_imported, room, opened), name)


def is_imported(room: Room) -> bool:
    """Whether a module of the room is imported."""
    return any(name in sys.modules for name in room.modules)


def _imported(room: Room, opened: Opened, module: ModuleType) -> None:
    try:
        for name in (PACKAGE, module.__name__):
            import_module(name)  # waits, should another thread be in the middle of it
        if not any(_is_under_way(name) for name in room.modules if name != module.__name__):
            opened(room)  # otherwise the other one, which imports this one, will call when it is complete
    except Exception:  # noqa: BLE001, S110 - it would fail the application's import; `opened` has reported its own faults
        pass


def _is_under_way(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))

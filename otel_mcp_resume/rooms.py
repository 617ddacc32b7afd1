"""Which module of `mcp` calls for which hooks, and how its import is noticed, whenever that is.

A new transport is one more line in `ROOMS`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
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
    Room(Side.SERVER, "otel_mcp_resume.sdk.server_sse", ("mcp.server.sse",)),
)

Opened = Callable[[Room], None]


def watch_imports(opened: Opened) -> None:
    """Calls `opened(room)` as soon as what a room waits for is imported, at once if it is. `opened` must not raise.

    To be called once in a process: a registration can't be taken back.
    """
    for room in ROOMS:
        for name in room.modules:
            wrapt.register_post_import_hook(partial(_imported, room, opened), name)


def visit_imported(opened: Opened) -> None:
    """Calls `opened(room)` for each room whose time has come already. `opened` must not raise."""
    for room in ROOMS:
        for name in room.modules:
            if (module := sys.modules.get(name)) is not None:
                _imported(room, opened, module)
                break


def _imported(room: Room, opened: Opened, module: ModuleType) -> None:
    """Opens the room with all its modules imported, so that nobody imports anything while holding a lock of ours."""
    try:
        for name in (PACKAGE, module.__name__):
            import_module(name)  # waits, should another thread be in the middle of it
        for name in room.modules:
            if name == module.__name__:
                continue
            if _is_under_way(name):
                return  # it imports this one, and calls when it is complete
            with suppress(ImportError):
                import_module(name)
        opened(room)
    except Exception:  # noqa: BLE001, S110 - it would fail the application's import; `opened` has reported its own faults
        pass


def _is_under_way(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))

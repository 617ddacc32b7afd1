"""Run by `doctor` in a process of its own: enables the plugin as an application would, and tells what came of it.

It imports every transport module that has hooks, and prints one JSON object. It serves no `/metrics`: its caller
has set the environment accordingly.
"""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec
from typing import TypedDict

from otel_mcp_resume import activate
from otel_mcp_resume.rooms import ROOMS, Room

__all__ = ["Findings", "probe"]


class Findings(TypedDict):
    """What the plugin looks like in a process that has imported all transports of `mcp`."""

    installed: bool
    """Whether there is a package `mcp` at all."""
    import_errors: dict[str, str]
    """What of it could not be imported, and why."""
    ways: list[str]
    """How the plugin got enabled, before anything here asked for it."""
    hooks: dict[str, bool]
    """Every hook, and whether it is in place."""


def probe() -> Findings:
    """Imports the transports and looks."""
    installed = find_spec("mcp") is not None
    errors = _import_transports() if installed else {}
    ways = [way.value for way in activate.ways()]
    if not ways:
        activate.instrument()  # look at the hooks all the same
    plugin = activate.current()
    hooks = {} if plugin is None else dict(plugin.hooks)
    if installed:
        hooks = {hook: hooks.get(hook, False) for room in ROOMS for hook in _expected(room)} | hooks
    return Findings(installed=installed, import_errors=errors, ways=ways, hooks=hooks)


def _expected(room: Room) -> tuple[str, ...]:
    expected: tuple[str, ...] = import_module(room.hooks).HOOKS
    return expected


def _import_transports() -> dict[str, str]:
    errors: dict[str, str] = {}
    for room in ROOMS:
        try:
            import_module(room.module)
        except Exception as error:  # noqa: BLE001 - a finding like any other
            errors[room.module] = repr(error)
    return errors


if __name__ == "__main__":
    print(json.dumps(probe()))

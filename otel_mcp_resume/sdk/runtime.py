"""What every hook is given: the watches, the way out, and the guard. Built once by `activate`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from otel_mcp_resume.sdk.guard import Guard
    from otel_mcp_resume.sdk.patches import Patches
    from otel_mcp_resume.watch.client import ClientWatch
    from otel_mcp_resume.watch.facts import Fact
    from otel_mcp_resume.watch.server import ServerWatch

__all__ = ["Runtime"]


@dataclass(frozen=True, slots=True)
class Runtime:
    """The parts of an activated plugin that hooks use."""

    patches: Patches
    guard: Guard
    report: Callable[[Iterable[Fact]], None]
    """Takes facts, in order. Cheap, thread-safe; what breaks inside it is counted, never raised."""
    client: ClientWatch
    server: ServerWatch

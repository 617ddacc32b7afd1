"""What all sessions and exchanges of a server process share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from otel_mcp_resume.rules.terms import Generation, Stream
    from otel_mcp_resume.watch.calls import CallBook
    from otel_mcp_resume.watch.deadlines import Deadlines
    from otel_mcp_resume.watch.facts import Fact
    from otel_mcp_resume.watch.ledger import Ledger
    from otel_mcp_resume.watch.pending import PendingBook

__all__ = ["ServerState"]


@dataclass(slots=True)
class ServerState:
    """`lock` guards everything that the parts below and their sessions remember; it is never held while facts go out.

    Several event loops may run in one process, and deadlines come from a thread of their own.
    """

    emit: Callable[[Iterable[Fact]], None]
    """Takes facts that are born in the deadline thread."""
    events: Callable[[Generation, Stream], Callable[[], None]]
    """Gives the counter of a connection, which is called for each of its messages."""
    deadlines: Deadlines
    clock: Callable[[], float]
    """Monotonic seconds."""
    ledger: Ledger
    pending: PendingBook
    calls: CallBook
    """Tool calls that were left without an answer."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Made anew in a forked child, so to be looked up here each time."""

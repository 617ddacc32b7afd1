"""Facts into numbers. The only file that knows which fact moves which metric.

Thread-safe, and cheap where it is called per message: `event_counter` hands out a bound increment.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from threading import get_ident
from typing import TYPE_CHECKING, Any

from otel_mcp_resume.report.series import INTERNAL_HOOKS, zero_series
from otel_mcp_resume.report.store import is_multiprocess, open_store
from otel_mcp_resume.report.tally import Tally
from otel_mcp_resume.rules.terms import Generation, Side, Stream
from otel_mcp_resume.watch.facts import (
    AttemptSettled,
    DuplicateEvent,
    EventsUndelivered,
    Fact,
    LedgerEvicted,
    PendingRequests,
    SessionClosed,
    SessionOpened,
    StreamClosed,
    StreamOpened,
    StreamReopened,
    Violated,
)

if TYPE_CHECKING:
    from prometheus_client import Metric

    from otel_mcp_resume.report.names import MetricName

__all__ = ["Exemplar", "Metrics", "OldestPending"]

Exemplar = Mapping[str, str]
"""The labels of an exemplar: what leads from a number to a trace."""

MANY_TALLIES = 64
"""From so many on, those of threads that have ended are looked for."""

OldestPending = Callable[[], Mapping[Generation, float]]
"""The age in seconds of the oldest unanswered server request, for the generations that have one."""


class Metrics:
    """All metrics of this process. It is told of facts, and collected by whoever exposes them."""

    def __init__(self) -> None:
        """Raises `OSError` in multi-process mode if `PROMETHEUS_MULTIPROC_DIR` cannot be written."""
        self._sides: dict[Side, None] = {}
        self._hooks: dict[str, bool] = {}
        self._info: tuple[str, str] | None = None
        self._oldest_pending: OldestPending | None = None
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._store = open_store()
        self._tallies: dict[tuple[int, Side, Generation, Stream], Tally] = {}
        self._many_tallies = MANY_TALLIES
        self._before_next: Callable[[], None] | None = None
        self._moves: dict[type, Callable[[Any, Exemplar | None], None]] = {
            AttemptSettled: self._attempt_settled,
            DuplicateEvent: self._duplicate_event,
            EventsUndelivered: self._events_undelivered,
            LedgerEvicted: self._ledger_evicted,
            PendingRequests: self._pending_requests,
            SessionClosed: self._session_closed,
            SessionOpened: self._session_opened,
            StreamClosed: self._stream_closed,
            StreamOpened: self._stream_opened,
            StreamReopened: self._stream_reopened,
            Violated: self._violated,
        }
        for hook in INTERNAL_HOOKS:
            self._store.internal_errors(hook)

    def after_fork(self) -> None:
        """In a forked child: begins at 0 again. The old numbers are the parent's, and a lock may be held by nobody."""
        sides, hooks = list(self._sides), dict(self._hooks)
        self._sides.clear()
        self._start()
        for side in sides:
            self.begin(side)
        for hook, installed in hooks.items():
            self.hook_installed(hook, installed)
        if self._info is not None:
            self.info(*self._info)

    def begin(self, side: Side) -> None:
        """Brings every series of `side` into being at 0. A second call changes nothing."""
        with self._lock:
            if side in self._sides:
                return
            for series in zero_series(side):
                self._store.create(series)
            self._sides[side] = None

    def event_counter(self, side: Side, generation: Generation, stream: Stream) -> Callable[[], None]:
        """Counts one SSE message each time it is called. To be asked for once a connection, in the thread that has it.

        Where processes share files, at once: what is not in them when a worker dies is lost.
        """
        key = (get_ident(), side, generation, stream)
        with self._lock:  # a thread that has just begun may have the identity of one that is being forgotten
            tally = self._tallies.get(key)
        if tally is not None:
            return tally.add
        increment = self._store.events(side, generation, stream).inc
        if is_multiprocess():
            return increment
        with self._lock:
            if len(self._tallies) >= self._many_tallies:
                self._forget_dead_threads()
            return self._tallies.setdefault(key, Tally(increment)).add

    def _forget_dead_threads(self) -> None:
        """An application may make a thread for every conversation. Holds the lock."""
        alive = sys._current_frames()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - others than `threading` makes
        for key in [key for key in self._tallies if key[0] not in alive]:
            self._tallies.pop(key).tell()
        self._many_tallies = max(MANY_TALLIES, 2 * len(self._tallies))

    def _tell(self) -> None:
        with self._lock:
            for tally in self._tallies.values():
                tally.tell()

    def record(self, fact: Fact, exemplar: Exemplar | None = None) -> None:
        """Moves what `fact` moves. `exemplar` goes to the counter of attempts and the histograms.

        A breach that is the reason of an attempt comes as a `Violated` of its own, and is counted by that alone.
        """
        if self._before_next is not None:
            call, self._before_next = self._before_next, None
            call()
        move = self._moves.get(type(fact))
        if move is not None:  # some facts are for spans alone
            move(fact, exemplar)

    def hook_installed(self, hook: str, installed: bool) -> None:  # noqa: FBT001 - what `Patches` calls with
        """Whether the patch called `hook` is in place."""
        with self._lock:
            self._hooks[hook] = installed
            self._store.hook_installed(hook).set(int(installed))
            self._store.internal_errors(hook)

    def internal_error(self, hook: str) -> None:
        """A fault of ours inside `hook` was swallowed."""
        self._store.internal_errors(hook).inc()

    def info(self, version: str, mcp_version: str) -> None:
        """The versions that `mcp_resume_info` shows."""
        self._info = (version, mcp_version)
        self._store.info(version, mcp_version).set(1)

    def watch_oldest_pending(self, source: OldestPending) -> None:
        """`source` is asked at every `refresh`, from the thread that collects."""
        self._oldest_pending = source

    def before_next_fact(self, call: Callable[[], None] | None) -> None:
        """Calls `call`, if any, once before the next fact is recorded: a process that was forked may never see one."""
        self._before_next = call

    def refresh(self) -> None:
        """Brings up to date what no fact moves.

        To be called before `collect`. Worker processes that share files do it by the clock, since others read those.
        """
        if self._oldest_pending is None or Side.SERVER not in self._sides:
            return
        ages = self._oldest_pending()
        for generation in Generation:
            if generation in ages or generation is not Generation.STATELESS:
                self._store.oldest_pending(generation).set(ages.get(generation, 0.0))

    def read(self, name: MetricName) -> Iterator[tuple[dict[str, str], float]]:
        """The labels and the value of every series of a counter or a gauge."""
        self._tell()
        return self._store.read(name)

    def collect(self) -> Iterator[Metric]:
        """The metrics of this process, in the order of the table.

        Without the `_created` series of prometheus_client: they would double the number of series, are no names of
        ours, and say nothing where every series exists from the start.
        """
        self._tell()
        for metric in self._store.registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric

    def _attempt_settled(self, fact: AttemptSettled, exemplar: Exemplar | None) -> None:
        labels = (fact.side, fact.generation, fact.previous_generation, fact.stream, fact.outcome, fact.reason)
        self._store.attempts(*labels).inc(1, _as_dict(exemplar))
        if fact.elapsed is not None:
            self._store.verdict(fact.side, fact.outcome).observe(fact.elapsed, _as_dict(exemplar))

    def _stream_reopened(self, fact: StreamReopened, exemplar: Exemplar | None) -> None:
        self._store.downtime(fact.side, fact.generation, fact.stream).observe(fact.downtime, _as_dict(exemplar))

    def _violated(self, fact: Violated, _: Exemplar | None) -> None:
        self._store.violations(fact.side, fact.generation, fact.rule).inc()

    def _stream_opened(self, fact: StreamOpened, _: Exemplar | None) -> None:
        self._store.open_streams(fact.side, fact.generation, fact.stream).inc()

    def _stream_closed(self, fact: StreamClosed, _: Exemplar | None) -> None:
        self._store.open_streams(fact.side, fact.generation, fact.stream).dec()
        self._store.disconnects(fact.side, fact.generation, fact.stream, fact.cause).inc()

    def _session_opened(self, fact: SessionOpened, _: Exemplar | None) -> None:
        self._store.open_sessions(fact.side, fact.generation).inc()

    def _session_closed(self, fact: SessionClosed, _: Exemplar | None) -> None:
        self._store.open_sessions(fact.side, fact.generation).dec()

    def _duplicate_event(self, fact: DuplicateEvent, _: Exemplar | None) -> None:
        self._store.duplicates(fact.side, fact.generation, fact.stream, fact.kind).inc()

    def _events_undelivered(self, fact: EventsUndelivered, _: Exemplar | None) -> None:
        self._store.undelivered(fact.generation, fact.stream, fact.cause).inc(fact.count)

    def _pending_requests(self, fact: PendingRequests, _: Exemplar | None) -> None:
        self._store.pending(fact.generation).inc(fact.change)

    def _ledger_evicted(self, fact: LedgerEvicted, _: Exemplar | None) -> None:
        self._store.evictions(fact.side).inc(fact.count)


def _as_dict(exemplar: Exemplar | None) -> dict[str, str] | None:
    return None if exemplar is None else dict(exemplar)

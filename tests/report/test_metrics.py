from __future__ import annotations

import threading
from typing import TYPE_CHECKING, get_args

import pytest

from otel_mcp_resume.report.metrics import Metrics
from otel_mcp_resume.report.names import METRICS
from otel_mcp_resume.report.series import INTERNAL_HOOKS, zero_series
from otel_mcp_resume.rules.terms import (
    Disconnect,
    DuplicateKind,
    Generation,
    Outcome,
    Reason,
    Side,
    Stream,
    UndeliveredCause,
    ViolationRule,
)
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
    from collections.abc import Mapping

CLIENT, SERVER = Side.CLIENT, Side.SERVER
HTTP, SSE = Generation.STREAMABLE_HTTP, Generation.SSE
STANDALONE, SESSION = Stream.STANDALONE, Stream.SESSION


def moved(metrics: Metrics) -> dict[str, float]:
    """All series that are not 0, as `name{value,value}`, without buckets."""
    return {
        f"{sample.name}{{{','.join(sample.labels.values())}}}": sample.value
        for family in metrics.collect()
        for sample in family.samples
        if sample.value and not sample.name.endswith("_bucket")
    }


MOVES: list[tuple[Fact, dict[str, float]]] = [
    (
        AttemptSettled(CLIENT, HTTP, SSE, STANDALONE, Outcome.GAP, Reason.FOREIGN_RESPONSE, 0.25, downtime=7.0),
        {
            "mcp_resume_attempts_total{client,streamable_http,sse,standalone,gap,foreign_response}": 1,
            "mcp_resume_verdict_seconds_count{client,gap}": 1,
            "mcp_resume_verdict_seconds_sum{client,gap}": 0.25,
        },
    ),
    (
        AttemptSettled(CLIENT, HTTP, HTTP, STANDALONE, Outcome.ABANDONED, Reason.NEVER_OPENED, None),
        {"mcp_resume_attempts_total{client,streamable_http,streamable_http,standalone,abandoned,never_opened}": 1},
    ),
    (
        Violated(SERVER, HTTP, ViolationRule.CROSS_STREAM_REPLAY, STANDALONE),
        {"mcp_resume_violations_total{server,streamable_http,cross_stream_replay}": 1},
    ),
    (
        EventsUndelivered(HTTP, STANDALONE, UndeliveredCause.SKIPPED, 3),
        {"mcp_resume_undelivered_events_total{streamable_http,standalone,skipped}": 3},
    ),
    (
        DuplicateEvent(CLIENT, SSE, SESSION, DuplicateKind.COLLISION),
        {"mcp_resume_duplicate_events_total{client,sse,session,collision}": 1},
    ),
    (
        StreamOpened(CLIENT, HTTP, STANDALONE),
        {"mcp_resume_open_streams{client,streamable_http,standalone}": 1},
    ),
    (
        StreamClosed(CLIENT, HTTP, STANDALONE, Disconnect.RESET),
        {
            "mcp_resume_open_streams{client,streamable_http,standalone}": -1,
            "mcp_resume_disconnects_total{client,streamable_http,standalone,reset}": 1,
        },
    ),
    (
        StreamReopened(SERVER, HTTP, STANDALONE, 1.5),
        {
            "mcp_resume_downtime_seconds_count{server,streamable_http,standalone}": 1,
            "mcp_resume_downtime_seconds_sum{server,streamable_http,standalone}": 1.5,
        },
    ),
    (SessionOpened(SERVER, SSE), {"mcp_resume_open_sessions{server,sse}": 1}),
    (SessionClosed(SERVER, SSE), {"mcp_resume_open_sessions{server,sse}": -1}),
    (PendingRequests(HTTP, 2), {"mcp_resume_pending_requests{streamable_http}": 2}),
    (PendingRequests(HTTP, -2), {"mcp_resume_pending_requests{streamable_http}": -2}),
    (LedgerEvicted(SERVER, 5), {"mcp_resume_ledger_evictions_total{server}": 5}),
]


@pytest.mark.parametrize(
    ("fact", "expected"),
    MOVES,
    ids=lambda value: type(value).__name__ if not isinstance(value, dict) else "",
)
def test_a_fact_moves_what_it_says_and_nothing_else(fact: Fact, expected: Mapping[str, float]) -> None:
    metrics = Metrics()
    metrics.record(fact)
    assert moved(metrics) == expected


def test_every_kind_of_fact_that_is_counted_is_tried_above_and_the_others_move_nothing() -> None:
    tried = {type(case[0]) for case in MOVES}
    assert set(Metrics()._moves) == tried < set(get_args(Fact)) | {object}


@pytest.mark.parametrize("side", Side)
def test_begin_brings_exactly_the_series_of_its_side_into_being_at_0(side: Side) -> None:
    metrics = Metrics()
    metrics.begin(side)
    metrics.begin(side)
    assert moved(metrics) == {}
    found = {
        (family.name, tuple(value for label, value in sample.labels.items() if label != "le"))
        for family in metrics.collect()
        for sample in family.samples
        if family.name != "mcp_resume_internal_errors"
    }
    assert found == {(name.name.removesuffix("_total"), tuple(map(str, values))) for name, values in zero_series(side)}


def test_a_second_begin_and_the_other_side_leave_values_alone() -> None:
    metrics = Metrics()
    metrics.begin(SERVER)
    metrics.record(SessionOpened(SERVER, SSE))
    metrics.begin(SERVER)
    metrics.begin(CLIENT)
    assert moved(metrics) == {"mcp_resume_open_sessions{server,sse}": 1}


def test_collected_families_are_the_table() -> None:
    metrics = Metrics()
    metrics.begin(CLIENT)
    metrics.begin(SERVER)
    metrics.info("1.0", "2.3.0")
    metrics.hook_installed("x", installed=True)
    families = list(metrics.collect())
    assert [(family.name, family.type, family.documentation) for family in families] == [
        (name.name.removesuffix("_total"), name.kind, name.help) for name in METRICS
    ]
    assert all(family.samples for family in families)
    for family, name in zip(families, METRICS, strict=True):
        expected = {"counter": {""}, "gauge": {""}, "histogram": {"_bucket", "_sum", "_count"}}[name.kind]
        assert {sample.name.removeprefix(name.name) for sample in family.samples} == expected
        assert {frozenset(sample.labels) - {"le"} for sample in family.samples} == {frozenset(name.labels)}


def test_a_bound_counter_counts_one_each_time_it_is_called_from_any_thread() -> None:
    metrics = Metrics()
    count = metrics.event_counter(SERVER, HTTP, STANDALONE)

    def run() -> None:
        for _ in range(1000):
            count()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert moved(metrics) == {"mcp_resume_events_total{server,streamable_http,standalone}": 4000}


def test_hooks_and_internal_errors_exist_at_0() -> None:
    metrics = Metrics()
    metrics.hook_installed("client.send", installed=True)
    metrics.hook_installed("client.gone", installed=False)
    values = {
        (sample.name, sample.labels["hook"]): sample.value
        for family in metrics.collect()
        for sample in family.samples
        if "hook" in sample.labels
    }
    assert values == {
        ("mcp_resume_hook_installed", "client.send"): 1,
        ("mcp_resume_hook_installed", "client.gone"): 0,
        **{("mcp_resume_internal_errors_total", hook): 0.0 for hook in (*INTERNAL_HOOKS, "client.send", "client.gone")},
    }
    metrics.internal_error("client.send")
    metrics.hook_installed("client.send", installed=False)
    assert moved(metrics) == {"mcp_resume_internal_errors_total{client.send}": 1}


def test_the_oldest_pending_request_is_asked_for_and_falls_back_to_0() -> None:
    metrics = Metrics()
    ages = {HTTP: 12.5}
    metrics.watch_oldest_pending(lambda: ages)
    metrics.refresh()
    assert moved(metrics) == {}
    metrics.begin(SERVER)
    metrics.refresh()
    assert moved(metrics) == {"mcp_resume_oldest_pending_request_seconds{streamable_http}": 12.5}
    ages.clear()
    metrics.refresh()
    assert moved(metrics) == {}


def test_after_a_fork_the_same_series_begin_at_0_again() -> None:
    metrics = Metrics()
    metrics.begin(CLIENT)
    metrics.info("1.0", "2.3.0")
    metrics.hook_installed("client.send", installed=True)
    before = {(sample.name, *sample.labels.values()) for family in metrics.collect() for sample in family.samples}
    metrics.record(SessionOpened(CLIENT, SSE))
    stale = metrics.event_counter(CLIENT, SSE, SESSION)
    metrics._lock.acquire()  # held by a thread that the child does not have
    metrics.after_fork()
    stale()
    assert moved(metrics) == {"mcp_resume_info{1.0,2.3.0}": 1, "mcp_resume_hook_installed{client.send}": 1}
    after = {(sample.name, *sample.labels.values()) for family in metrics.collect() for sample in family.samples}
    assert after == before
    metrics.begin(CLIENT)


def test_a_call_before_the_next_fact_is_made_once() -> None:
    metrics = Metrics()
    calls: list[dict[str, float]] = []
    metrics.before_next_fact(lambda: calls.append(moved(metrics)))
    metrics.record(SessionOpened(CLIENT, SSE))
    metrics.record(SessionOpened(CLIENT, SSE))
    assert calls == [{}]


def test_an_exemplar_goes_to_the_counter_and_to_the_histograms() -> None:
    metrics = Metrics()
    trace = {"trace_id": "0af7651916cd43dd8448eb211c80319c"}
    metrics.record(AttemptSettled(CLIENT, HTTP, HTTP, STANDALONE, Outcome.GAP, Reason.SESSION_CHANGED, 0.25), trace)
    metrics.record(StreamReopened(CLIENT, HTTP, STANDALONE, 2.0), trace)
    with_exemplar = {
        sample.name for family in metrics.collect() for sample in family.samples if sample.exemplar is not None
    }
    assert with_exemplar == {
        "mcp_resume_attempts_total",
        "mcp_resume_verdict_seconds_bucket",
        "mcp_resume_downtime_seconds_bucket",
    }

"""What is kept of the messages that each thread has counted, once the thread is gone."""

from __future__ import annotations

import threading

from otel_mcp_resume.report.metrics import MANY_TALLIES, Metrics
from otel_mcp_resume.report.names import EVENTS
from otel_mcp_resume.report.tally import Tally
from otel_mcp_resume.rules.terms import Generation, Side, Stream

HERE = Side.SERVER, Generation.STREAMABLE_HTTP, Stream.STANDALONE


def test_threads_that_have_ended_leave_their_number_and_nothing_else() -> None:
    metrics = Metrics()
    own = metrics.event_counter(*HERE)

    def converse(others: threading.Barrier) -> None:
        metrics.event_counter(*HERE)()
        others.wait(30)  # all alive at once, so that each has an identity of its own

    for _ in range(4):
        others = threading.Barrier(MANY_TALLIES)
        threads = [threading.Thread(target=converse, args=(others,)) for _ in range(MANY_TALLIES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        own()
    metrics._forget_dead_threads()
    assert len(metrics._tallies) == 1
    own()
    expected = 4 * (MANY_TALLIES + 1) + 1
    assert [value for _, value in metrics.read(EVENTS)] == [expected]


def test_it_is_bounded_by_the_threads_that_live_at_once() -> None:
    metrics = Metrics()
    metrics._tallies = {(-number, *HERE): Tally(lambda _: None) for number in range(MANY_TALLIES)}
    metrics.event_counter(*HERE)
    assert len(metrics._tallies) == 1

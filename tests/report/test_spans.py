"""Facts into spans: whole spans, with ids that count up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from otel_mcp_resume.report import fields
from otel_mcp_resume.report.spans import Spans
from otel_mcp_resume.rules.terms import Disconnect, Generation, Side, Stream
from otel_mcp_resume.settings import Settings
from otel_mcp_resume.watch.facts import AttemptBegun, AttemptSettled, Node, SessionOpened, StreamOpened

from .traced import HERE, VERSION, World

STREAM = {**HERE, "mcp.resume.stream": "standalone", "mcp.session.id": "S1", "mcp.protocol.version": VERSION}
OK = {**STREAM, "http.response.status_code": 200}
CALM: dict[str, Any] = {"scope": "otel_mcp_resume", "kind": "INTERNAL", "status": "UNSET", "links": [], "events": []}
CARRIER = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.deadlines.close()


def cut_after(world: World, *ids: str) -> Any:
    stream = world.standalone()
    connection = world.open(stream)
    world.feed(connection, *ids)
    world.end(connection)
    world.now += 2.5
    return stream


def test_the_whole_story_of_a_resumption(world: World) -> None:
    world.initialize()
    stream = cut_after(world, "6", "7")
    second = world.open(stream, token="7")
    world.feed(second, "8", "9")
    world.end(second, Disconnect.CLOSED)
    world.close()
    session, first, attempt, replacement = 2, 3, 4, 5  # 1 is the trace
    assert world.seen == [
        {
            **CALM,
            "name": "mcp.stream",
            "trace": 1,
            "span": first,
            "parent": session,
            "attributes": {
                **OK,
                "mcp.resume.events": 2,
                "mcp.resume.first_event_id": "6",
                "mcp.resume.last_event_id": "7",
            },
        },
        {
            **CALM,
            "name": "mcp.resume",
            "trace": 1,
            "span": attempt,
            "parent": session,
            "links": [first, replacement],
            "events": [("sse.event", {"mcp.resume.event_id": "8"})],
            "attributes": {
                **OK,
                "mcp.resume.outcome": "proven",
                "mcp.resume.reason": "replayed_event",
                "mcp.resume.previous_generation": "streamable_http",
                "mcp.resume.previous_session_id": "S1",
                "mcp.resume.token": "7",
                "mcp.resume.first_event_id": "8",
                "mcp.resume.last_event_id": "8",
                "mcp.resume.events": 1,
                "mcp.resume.downtime": 2.5,
            },
        },
        {
            **CALM,
            "name": "mcp.stream",
            "trace": 1,
            "span": replacement,
            "parent": session,
            "links": [first],
            "attributes": {
                **OK,
                "mcp.resume.events": 2,
                "mcp.resume.first_event_id": "8",
                "mcp.resume.last_event_id": "9",
            },
        },
        {
            **CALM,
            "name": "mcp.session",
            "trace": 1,
            "span": session,
            "parent": None,
            "attributes": {**HERE, "mcp.session.id": "S1"},
        },
    ]


def test_an_attempt_is_there_at_the_verdict_while_its_stream_goes_on(world: World) -> None:
    world.initialize()
    stream = cut_after(world, "7")
    world.feed(world.open(stream, token="7"), "8")
    assert [span["name"] for span in world.seen] == ["mcp.stream", "mcp.resume"]


def test_a_gap_is_an_error_and_its_record_and_number_lead_to_it(world: World) -> None:
    world.initialize()
    stream = cut_after(world, "7")
    world.open(stream, token="7", named="S2")
    span = world.seen[-1]
    assert span["status"] == "ERROR gap: session_changed"
    assert (span["attributes"]["mcp.session.id"], span["attributes"]["mcp.resume.previous_session_id"]) == ("S2", "S1")
    here = {"trace_id": format(1, "032x"), "span_id": format(span["span"], "016x")}
    assert [where for fact, where in world.records if isinstance(fact, AttemptSettled)] == [here]
    exemplars = [
        (sample.name, sample.exemplar.labels)
        for family in world.metrics.collect()
        for sample in family.samples
        if sample.exemplar is not None
    ]
    trace_id = {"trace_id": format(1, "032x")}
    assert sorted(exemplars, key=str) == [
        ("mcp_resume_attempts_total", trace_id),
        ("mcp_resume_downtime_seconds_bucket", trace_id),
        ("mcp_resume_verdict_seconds_bucket", trace_id),
    ]


def test_giving_up_is_an_error_that_is_linked_to_what_was_cut(world: World) -> None:
    world.initialize()
    stream = cut_after(world, "7")
    world.report(stream.given_up())
    span = world.seen[-1]
    assert (span["name"], span["status"], span["links"]) == ("mcp.resume", "ERROR abandoned: retries_exhausted", [3])


@pytest.mark.parametrize(("status", "outcome"), [(404, "rejected"), (503, "failed")])
def test_what_is_refused_is_no_error_of_the_span(world: World, status: int, outcome: str) -> None:
    world.initialize()
    world.request(cut_after(world, "7"), token="7")(status)
    span = world.seen[-1]
    assert (span["attributes"]["mcp.resume.outcome"], span["status"]) == (outcome, "UNSET")
    assert span["attributes"]["http.response.status_code"] == status


def test_32_events_of_the_window_are_told_of(world: World) -> None:
    world.initialize()
    stream = cut_after(world, "cafe")
    connection = world.open(stream, token="cafe")
    world.feed(connection, *(f"{number * 7919:x}-x" for number in range(1, 100)))
    world.end(connection)
    assert len(world.seen[-2]["events"]) == 32


def test_a_breach_is_an_event_of_its_connection(world: World) -> None:
    world.initialize()
    connection = world.open(world.standalone())
    world.feed(connection, "7")
    world.report(connection.feed("id: 7\ndata: something else\n\n"))
    world.end(connection)
    assert world.seen[-1]["events"] == [("mcp_resume.violation", {"mcp.resume.rule": "event_id_collision"})]


@pytest.mark.parametrize(("mode", "is_shown"), [("hash", True), ("none", False)])
def test_ids_are_shown_as_asked_for(mode: str, is_shown: bool) -> None:
    world = World(Settings(ids=mode, ids_key=b"key"))
    world.initialize("secret-session")
    stream = world.standalone()
    first = world.open(stream)
    world.feed(first, "secret-7")
    world.end(first)
    world.feed(world.open(stream, token="secret-7"), "secret-8")
    text = str(world.seen)
    assert "secret" not in text
    assert ("'mcp.resume.token'" in text) is is_shown
    assert ("'mcp.resume.event_id'" in text) is is_shown
    world.deadlines.close()


# -- across processes ----------------------------------------------------------------------------


def test_a_request_carries_the_context_of_its_attempt(world: World) -> None:
    world.initialize()
    stream = cut_after(world, "7")
    _, attempt = stream.requesting(_head("7"))
    node = Node()
    world.report([AttemptBegun(Side.CLIENT, Generation.STREAMABLE_HTTP, Stream.STANDALONE, node)])
    headers: dict[str, str] = {}
    token = Spans.carry(node, headers)
    current = trace.get_current_span().get_span_context()
    Spans.drop(token)
    assert headers["traceparent"].split("-")[1:3] == [format(current.trace_id, "032x"), format(current.span_id, "016x")]
    assert not trace.get_current_span().get_span_context().is_valid
    assert attempt is not None


def _head(token: str) -> Any:
    from otel_mcp_resume.watch.exchange import RequestHead

    return RequestHead("GET", "S1", token, VERSION)


def test_a_context_of_the_applications_own_stays(world: World) -> None:
    node = Node()
    world.report([AttemptBegun(Side.CLIENT, Generation.STREAMABLE_HTTP, Stream.STANDALONE, node)])
    headers = dict(CARRIER)
    Spans.drop(Spans.carry(node, headers))
    assert headers == CARRIER


def server_attempt(node: Node, **more: Any) -> AttemptBegun:
    return AttemptBegun(Side.SERVER, Generation.STREAMABLE_HTTP, Stream.STANDALONE, node, carrier=CARRIER, **more)


def span_of(node: Node) -> Any:
    return node.made


def test_a_server_goes_on_with_the_trace_of_its_client(world: World) -> None:
    node = Node()
    world.report([server_attempt(node)])
    span = span_of(node)
    assert format(span.context.trace_id, "032x") in CARRIER["traceparent"]
    assert format(span.parent.span_id, "016x") in CARRIER["traceparent"]


def test_a_server_joins_the_span_of_its_web_server(world: World) -> None:
    assert world.provider is not None
    node = Node()
    with world.provider.get_tracer("asgi").start_as_current_span("GET /mcp") as outer:
        world.report([server_attempt(node)])
    assert span_of(node).parent == outer.get_span_context()


def test_a_request_that_waited_began_when_it_came_in(world: World) -> None:
    young, old = Node(), Node()
    world.report([server_attempt(young), server_attempt(old, age=3600.0)])
    assert span_of(young).start_time - span_of(old).start_time > 3599e9


# -- when there is nobody, or not now ------------------------------------------------------------


def test_without_a_provider_there_is_nothing_at_all(world: World) -> None:
    world.provider = None
    world.initialize()
    world.open(cut_after(world, "7"), token="7", named="S2")
    assert world.seen == []
    assert world.transport.node.made is None
    assert [where for _, where in world.records] == [None] * len(world.records)
    assert world.value("mcp_resume_attempts_total", outcome="gap") == 1


def test_suppressed_instrumentation_makes_no_spans_and_loses_no_number(world: World) -> None:
    with suppress_instrumentation():
        world.initialize()
        world.open(cut_after(world, "7"), token="7", named="S2")
    assert world.seen == []
    assert world.value("mcp_resume_attempts_total", outcome="gap") == 1


def test_a_trace_that_is_not_sampled_is_no_exemplar(world: World) -> None:
    world.provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    world.initialize()
    world.open(cut_after(world, "7"), token="7", named="S2")
    assert all(sample.exemplar is None for family in world.metrics.collect() for sample in family.samples)


def test_limits_and_resource_are_the_applications(world: World) -> None:
    limits = SpanLimits(max_attributes=3, max_links=1, max_events=1)
    world.provider = TracerProvider(span_limits=limits, shutdown_on_exit=False)
    world.provider.add_span_processor(SimpleSpanProcessor(world.exporter))
    world.initialize()
    world.feed(world.open(cut_after(world, "7"), token="7"), "8")
    span = world.seen[-1]
    assert (len(span["attributes"]), len(span["links"])) == (3, 1)
    assert world.value("mcp_resume_internal_errors_total") == 0


def test_a_tracer_that_raises_costs_the_span_and_nothing_else(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> Any:
        raise RecursionError

    monkeypatch.setattr(world.tracing, "tracer", fails)
    world.initialize()
    world.open(cut_after(world, "7"), token="7", named="S2")
    assert world.seen == []
    assert world.value("mcp_resume_attempts_total", outcome="gap") == 1
    assert world.value("mcp_resume_internal_errors_total", hook="report.spans") > 0


def test_facts_of_things_that_nobody_names_are_no_spans(world: World) -> None:
    here = Side.SERVER, Generation.SSE
    world.report([SessionOpened(*here), StreamOpened(*here, Stream.SESSION)])
    assert world.seen == []
    assert world.value("mcp_resume_internal_errors_total") == 0
    assert fields.SPAN_SESSION == "mcp.session"

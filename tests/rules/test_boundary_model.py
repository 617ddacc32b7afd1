"""Any order of calls, compared with a model that forgets nothing.

The clients of the model are cut after any event. Without eviction they must get everything exactly once; with it, a
resumption is complete or it is refused, and it is refused only if something had to go.
"""

from __future__ import annotations

from typing import ClassVar

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import initialize, invariant, precondition, rule

from otel_mcp_resume.rules.boundary import (
    ResumptionBoundaryError,
    ResumptionKind,
    ResumptionProblem,
    handle_reconnect,
)
from tests.rules.boundary_model import (
    SESSIONS,
    UNLIMITED,
    ModelMachine,
    Request,
    Session,
    has_had_streams,
    has_open_streams,
    has_pending_requests,
    has_room,
    has_sessions,
)

NAMES = ["a", "b", "c"]
indices = st.integers(0, 63)
rarely = st.sampled_from([False] * 7 + [True])


class BoundaryMachine(ModelMachine):
    @initialize()
    def begin(self) -> None:
        self.register(0)
        self.register(1)

    @precondition(has_room)
    @rule(index=indices)
    def register(self, index: int) -> None:
        name = SESSIONS[index % len(SESSIONS)]
        if name in self.live and self.session(list(self.live).index(name)) is not None:
            with pytest.raises(ValueError, match="already"):
                self.log.register_session(name)
            return
        self.log.register_session(name)
        self.now += 1
        self.live[name] = Session(name, self.now)

    @precondition(has_sessions)
    @rule(index=indices, names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=6), last=rarely)
    def append(self, index: int, names: list[str], *, last: bool) -> None:
        if (session := self.session(index)) is None:
            return
        for name in names:
            payload = self.fresh("event")
            try:
                token = self.log.append(session.name, name, payload, last=last)
            except ValueError:
                assert session.current[name].finished
            else:
                self.log_event(session, name, token, payload, None).finished = last

    @precondition(has_open_streams)
    @rule(index=indices, which=indices)
    def append_to_a_stream(self, index: int, which: int) -> None:
        """One of those that a session resumption opened, too."""
        session = self.session(index)
        if session is None or not session.current:
            return
        name = list(session.current)[which % len(session.current)]
        payload = self.fresh("event")
        try:
            token = self.log.append(session.name, name, payload)
        except ValueError:
            assert session.current[name].finished
        except ResumptionBoundaryError as error:
            self.assert_problem(error, ResumptionProblem.EVICTED)
            assert name.startswith("~")
            self.assert_stream_had_to_go(session.current[name])
        else:
            self.log_event(session, name, token, payload, None)

    @precondition(has_sessions)
    @rule(index=indices, name=st.sampled_from([None, *NAMES]))
    def queue(self, index: int, name: str | None) -> None:
        if (session := self.session(index)) is None:
            return
        key = self.fresh("request")
        request = Request(key)
        try:
            token = self.log.queue_server_request(session.name, key, key, stream=name)
        except ValueError:
            assert name is not None
            assert session.current[name].finished
            return
        session.pending[key] = request
        assert (token is None) == (name is None)
        if name is not None and token is not None:
            self.log_event(session, name, token, key, request)

    @precondition(has_pending_requests)
    @rule(index=indices, which=indices)
    def answer(self, index: int, which: int) -> None:
        session = self.session(index)
        if session is not None and session.pending:
            key = list(session.pending)[which % len(session.pending)]
            assert self.log.mark_answered(session.name, key)
            assert not self.log.mark_answered(session.name, key)
            del session.pending[key]

    @precondition(has_sessions)
    @rule(index=indices, name=st.sampled_from(NAMES))
    def deliver_queued(self, index: int, name: str) -> None:
        if (session := self.session(index)) is None:
            return
        due = [request for request in session.pending.values() if request.carrier is None]
        try:
            events = self.log.deliver_queued(session.name, name)
        except ValueError:
            assert session.current[name].finished
            return
        assert [event.payload for event in events] == [request.payload for request in due]
        for event, request in zip(events, due, strict=True):
            self.log_event(session, name, event.event_id, request.payload, request)

    @precondition(has_sessions)
    @rule(index=indices, connected=st.sets(st.sampled_from(NAMES)), cut=indices)
    def resume_session(self, index: int, connected: set[str], cut: int) -> None:
        if (session := self.session(index)) is None:
            return
        due = [
            request
            for request in session.pending.values()
            if request.carrier is None or not (request.carrier[0].name in connected and not request.carrier[0].closed)
        ]
        resumption = handle_reconnect(self.log, session.name, None, connected=connected)
        assert resumption.kind is ResumptionKind.SESSION
        if self.limits is UNLIMITED:  # a stream that was evicted is not connected any more
            assert [event.payload for event in resumption.events] == [request.payload for request in due]
        stream = self.open(session, resumption.stream, resumption.start)
        for event in resumption.events:
            self.log_event(session, stream.name, event.event_id, event.payload, session.pending[event.payload])
        self.received(stream, resumption.events[: cut % (len(resumption.events) + 1)])

    @precondition(has_had_streams)
    @rule(index=indices, which=indices, cuts=st.lists(indices, min_size=1, max_size=4))
    def client_comes_back(self, index: int, which: int, cuts: list[int]) -> None:
        """Again and again, each time with the last token that it received."""
        session = self.session(index)
        if session is not None and session.streams:
            streams = [stream for stream in session.streams if stream.read < len(stream.events)] or session.streams
            stream = streams[which % len(streams)]
            for cut in cuts:
                events = self.resume(session, stream, stream.read)
                self.received(stream, events[: 1 + cut % max(1, len(events))])

    @precondition(has_had_streams)
    @rule(index=indices, positions=st.lists(indices, min_size=1, max_size=4))
    def somebody_shows_a_token(self, index: int, positions: list[int]) -> None:
        """Any of those that were ever issued in the session."""
        session = self.session(index)
        if session is not None:
            places = [(stream, number) for stream in session.streams for number in range(len(stream.tokens))]
            for position in positions if places else ():
                self.resume(session, *places[position % len(places)])

    @precondition(has_sessions)
    @rule(index=indices, name=st.sampled_from(NAMES), really=rarely)
    def close_stream(self, index: int, name: str, *, really: bool) -> None:
        if really and (session := self.session(index)) is not None and self.log.close_stream(session.name, name):
            session.current.pop(name).closed = True

    @precondition(has_sessions)
    @rule(index=indices, really=rarely)
    def unregister(self, index: int, *, really: bool) -> None:
        if really and (session := self.session(index)) is not None:
            assert self.log.unregister_session(session.name)
            self.ended.append(self.live.pop(session.name))

    @precondition(has_sessions)
    @rule(index=indices, which=indices)
    def present_a_token_elsewhere(self, index: int, which: int) -> None:
        """Tokens of all other sessions, those that have ended included, are refused in this one."""
        if (session := self.session(index)) is None:
            return
        others = [other for other in [*self.live.values(), *self.ended] if other is not session]
        tokens = [token for other in others for stream in other.streams for token in stream.tokens]
        if tokens:
            token = tokens[which % len(tokens)]
            with pytest.raises(ResumptionBoundaryError) as caught:
                handle_reconnect(self.log, session.name, token)
            assert caught.value.problem in {
                ResumptionProblem.FOREIGN_SESSION_TOKEN,
                ResumptionProblem.UNKNOWN_TOKEN,
            }
            with pytest.raises(ResumptionBoundaryError) as caught:
                handle_reconnect(self.log, None, token)
            assert caught.value.problem is ResumptionProblem.ORPHAN_TOKEN

    @invariant()
    def the_limits_hold(self) -> None:
        stats = self.log.stats()
        assert stats.sessions <= self.limits["max_sessions"]
        assert stats.streams <= self.limits["max_streams"]
        assert stats.events <= self.limits["max_events"]

    def teardown(self) -> None:
        """Nothing that is unanswered is lost: the next session resumption brings all of it."""
        for index in range(len(self.live)):
            session = list(self.live.values())[index]
            try:
                resumption = self.log.resume(session.name)
            except ResumptionBoundaryError:
                assert self.limits is not UNLIMITED
            else:
                assert [event.payload for event in resumption.events] == list(session.pending)


class EvictingMachine(BoundaryMachine):
    limits: ClassVar[dict[str, int]] = {
        "max_sessions": 2,
        "max_streams": 5,
        "max_streams_per_session": 3,
        "max_events": 10,
        "max_events_per_session": 5,
        "max_pending_per_session": 10**6,
    }


SETTINGS = settings(
    max_examples=100, stateful_step_count=40, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
TestBoundaryModel = BoundaryMachine.TestCase
TestBoundaryModel.settings = SETTINGS
TestEvictionModel = EvictingMachine.TestCase
TestEvictionModel.settings = SETTINGS

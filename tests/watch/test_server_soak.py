"""Two hundred thousand sessions, opened and closed: what the watch holds afterwards is what it held before."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from otel_mcp_resume.watch.deadlines import Deadlines
from otel_mcp_resume.watch.facts import SessionClosed, SessionOpened
from otel_mcp_resume.watch.server import End, Request, ServerWatch
from otel_mcp_resume.watch.server_session import REQUEST, RESPONSE
from tests.watch.server_world import GET_STREAM, Limits

SESSIONS = 100_000
WARM_UP = 30_000
TOLERATED = 4 * 1024 * 1024

STATM = Path("/proc/self/statm")


def resident() -> int:
    """Bytes of memory that this process has in use."""
    gc.collect()
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def one_session(watch: ServerWatch, number: int, counts: list[int]) -> None:
    """The handshake, a call that is cut, an announcement that waits, a resumption, a question; then the end."""
    is_stored = number % 2 == 0
    session = watch.session(str(number), standalone=GET_STREAM, is_stored=is_stored)

    def emit(name: str, kind: int = 0, rpc_id: str = "") -> str:
        if not is_stored:
            session.emitted(name, kind, rpc_id)
            return ""
        session.storing += 1
        event_id = f"{number}-{name}-{session.serving}-{len(session.streams)}-{watch.remembered[1]}"
        session.stored(name, event_id, kind, rpc_id)
        return event_id

    post = watch.exchange(Request("POST", peer=("peer",)))
    session.serve(post)
    session.inbox.initialized("soak 1")
    session.registered("1", post)
    facts = post.head(200, event_stream=True, session_id=str(number))
    counts[0] += sum(isinstance(fact, SessionOpened) for fact in facts)
    emit("1", RESPONSE, "1")
    post.wrote()
    post.ended(End(finished=True))
    get = watch.exchange(Request("GET", session_id=str(number)))
    session.serve(get)
    get.head(200, event_stream=True, session_id=str(number))
    session.registered(GET_STREAM, get)
    token = emit(GET_STREAM)
    get.wrote()
    session.unregistered(GET_STREAM)
    get.ended(End(left=True))
    missed = emit(GET_STREAM)
    call = watch.exchange(Request("POST", session_id=str(number), peer=("peer",)))
    session.serve(call)
    session.registered("2", call)
    session.inbox.called(call, "2", "tool", {"number": number})
    call.head(200, event_stream=True, session_id=str(number))
    emit("2", REQUEST, "q")
    call.wrote()
    session.unregistered("2")
    call.ended(End(left=True))
    again = watch.exchange(Request("GET", session_id=str(number), token=token or None))
    session.serve(again)
    again.head(200, event_stream=True, session_id=str(number))
    if token:
        replay = session.replay(again)
        replay.handed(missed)
        again.wrote()
        replay.returned(GET_STREAM)
    session.registered(GET_STREAM, again)
    again.ended(End(left=True))
    counts[1] += sum(isinstance(fact, SessionClosed) for fact in session.end())


@pytest.mark.once
@pytest.mark.skipif(not STATM.exists(), reason="memory is read from /proc")
@pytest.mark.timeout(600)
def test_memory_is_flat() -> None:
    deadlines = Deadlines(20, lambda _, error: pytest.fail(str(error)))
    watch = ServerWatch(emit=lambda _: None, events=lambda *_: lambda: None, deadlines=deadlines, limits=Limits())
    counts = [0, 0]
    for number in range(WARM_UP):
        one_session(watch, number, counts)
    before = resident()
    for number in range(WARM_UP, WARM_UP + SESSIONS):
        one_session(watch, number, counts)
    grown = resident() - before
    deadlines.close()
    print(f"{SESSIONS} sessions, {before / 2**20:.1f} MiB before, {grown / 2**20:+.2f} MiB")
    assert counts == [WARM_UP + SESSIONS] * 2
    assert watch.remembered == (0, 0)
    assert grown < TOLERATED
    assert watch.oldest_pending() == {}

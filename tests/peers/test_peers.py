"""Peers that are not ours, over real sockets: what is said about them is what happened, no more and no less."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers.nodejs import NodeMissingError, install
from tests.peers.pairs import Meeting, meetings
from tests.peers.scenes import SCENES

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(180),
    pytest.mark.filterwarnings("ignore:.* is deprecated as of 2026-07-28"),
    pytest.mark.filterwarnings(
        "ignore::pytest.PytestUnraisableExceptionWarning"
    ),  # streams that an SDK leaves unclosed
]

HARMLESS = {"incomparable_event_id", "not_resumable"}
"""All arrived, and the client could not know."""


@pytest.fixture(scope="session")
def node_home(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Where the packages are, installed once for all workers."""
    base = tmp_path_factory.getbasetemp()
    home = (base if worker_id == "master" else base.parent) / "peers"
    try:
        install(home)
    except NodeMissingError as missing:
        pytest.skip(str(missing))
    return home


@pytest.mark.parametrize("meeting", list(meetings()), ids=str)
def test_both_sides_say_what_happened(meeting: Meeting, request: pytest.FixtureRequest) -> None:
    home = request.getfixturevalue("node_home") if meeting.runs_node else None
    report = meeting.play(home)
    told = "\n".join([*report.wire, *report.results, *report.heard, *report.words])
    assert report.client_said == meeting.expected("client"), told
    assert report.server_said == meeting.expected("server"), told
    assert not report.faults
    assert report.generations <= {"stateless" if meeting.client.endswith("2026") else "streamable_http"}

    # The expectations themselves are held against what reached the application.
    lost = SCENES[meeting.scene].lost([*report.heard, *report.results])
    alarms = [each for each in report.client_said + report.server_said if not set(each.split()) & {"proven", *HARMLESS}]
    assert bool(lost) == bool(alarms), (lost, alarms)

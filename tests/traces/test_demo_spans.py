"""What a receiver of OTLP sees of every scene of the demo: all spans, with all that they carry, from every process.

`UPDATE_STORIES=1` adds what is seen to what is known; a span that does not come every time is marked by that.
"""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from pathlib import Path

import pytest

from otel_mcp_resume.cli.demo.scenes import SCENES
from tests.traces.plays import play, to
from tests.traces.receiver import receiver
from tests.traces.story import differences, merge, tell

STORIES = Path(__file__).parent / "stories"


@pytest.mark.full
@pytest.mark.parametrize("name", [scene.name for scene in SCENES])
def test_the_whole_story_of_a_scene(name: str) -> None:
    with receiver() as received:
        result = play(name, to(received.url))
    assert result.as_wanted, result.verdict
    story = tell(received.spans)
    file = STORIES / f"{name}.mcp{version('mcp').partition('.')[0]}.json"
    known = json.loads(file.read_text()) if file.exists() else []
    if os.environ.get("UPDATE_STORIES"):
        known = merge(known, story)
        file.write_text(json.dumps(known, indent=1) + "\n")
    assert differences(known, story) == ([], [])

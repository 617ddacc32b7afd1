"""What a receiver of OTLP sees of every scene of the demo: all spans, with all that they carry, from every process.

`UPDATE_STORIES=1` writes what is seen instead of comparing it.
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
from tests.traces.story import tell

STORIES = Path(__file__).parent / "stories"


@pytest.mark.full
@pytest.mark.parametrize("name", [scene.name for scene in SCENES])
def test_the_whole_story_of_a_scene(name: str) -> None:
    with receiver() as received:
        result = play(name, to(received.url))
    assert result.as_wanted, result.verdict
    story = tell(received.spans)
    file = STORIES / f"{name}.mcp{version('mcp').partition('.')[0]}.json"
    if os.environ.get("UPDATE_STORIES"):
        file.write_text(json.dumps(story, indent=1) + "\n")
    assert story == json.loads(file.read_text())

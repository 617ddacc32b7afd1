"""Real runs: processes, sockets, and the plugin that the environment variable brings in."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pytest

from otel_mcp_resume.cli.demo import missing

RESUMES = tuple(map(int, version("mcp").split(".")[:2])) >= (1, 23)
needs_resumption = pytest.mark.skipif(not RESUMES, reason="the SDK's client does not resume by itself before 1.23")
needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc to find processes")

RUN = "import sys; from otel_mcp_resume.cli import main; sys.exit(main(sys.argv[1:]))"
LIMIT = 110
"""Seconds, of which a demo may take 60 on a machine that does nothing else."""


def demo(*arguments: str, program: str = RUN) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, "demo", *arguments]
    wide = {**os.environ, "COLUMNS": "160"}
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, env=wide)


def verdicts(output: str) -> dict[str, str]:
    """What was said of each scene."""
    return dict(re.findall(r"s  (\S+) +verdict: (.*)", output))


def one_line(output: str) -> str:
    """The first two columns of the table without their breaks."""
    return " ".join(" ".join(line[:92].split()) for line in output.splitlines())


EVERY = "test_every_scene_gives_its_verdict"
FAST = ("resume", "deploy")
Played = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest) -> Played:
    """One demo for all that look at what it says: of every scene where that is tested, or else of the fast ones."""
    every = any(getattr(item, "originalname", "") == EVERY for item in request.session.items)
    run = demo("--verbose", *(() if every else (word for scene in FAST for word in ("--scene", scene))))
    assert run.returncode == 0, run.stdout + run.stderr
    assert len(verdicts(run.stdout)) == (8 if every else len(FAST))
    return run


def said_of(scene: str, run: Played) -> str:
    """What was said while it was played."""
    return "".join(line for line in run.stdout.splitlines(keepends=True) if re.match(rf" *[\d.]+ s  {scene} ", line))


@needs_resumption
@pytest.mark.xdist_group("demo")
def test_fast_scenes_give_their_verdicts(played: Played) -> None:
    found = verdicts(played.stdout)
    assert found["resume"] == "client: proven, replayed_event; server: proven, replay_complete"
    assert found["deploy"] == "client: gap, session_changed"
    assert "\x1b" not in played.stdout
    assert re.search(r"resume +nothing \(10 of 10 rows; exported 10 rows\)", played.stdout)
    assert re.search(r"deploy +nothing \(\d of 10 rows; still waiting", played.stdout)
    assert "otel-mcp-resume doctor" in played.stdout
    assert played.stderr == ""
    # What was said must have happened: the token of one session, accepted under another, whose ids begin anew.
    said = said_of("deploy", played)
    resumed = re.search(r"\| GET, session (\w+), Last-Event-ID (482\d) -> 200, session (\w+)", said)
    assert resumed
    assert resumed[1] != resumed[3]
    assert f"{resumed[2]} of session {resumed[1]}: 200, session {resumed[3]}, first id 1" in said


@needs_resumption
@pytest.mark.full
@pytest.mark.xdist_group("demo")
def test_every_scene_gives_its_verdict(played: Played) -> None:
    assert len(verdicts(played.stdout)) == 8
    assert "wanted" not in played.stdout


@needs_resumption
@pytest.mark.xdist_group("demo")
def test_a_migration_is_judged_by_where_the_token_came_from_and_the_safe_way_is_silent() -> None:
    run = demo("--scene", "migration", "--verbose")
    assert run.returncode == 0, run.stdout + run.stderr
    assert verdicts(run.stdout) == {
        "migration": "client: gap, session_changed, with a token of sse; streamable: gap, unknown_token_accepted; "
        "streamable: unknown_token_accepted"
    }
    # Ann's one attempt is all there was, though Bob was moved as well.
    counted = re.findall(r"\| (\d+) x (\w+): ", run.stdout)
    assert counted == [("1", "client"), ("1", "streamable"), ("1", "streamable")]
    # One more of her news may be there before a busy machine has cut the stream: 4821, or a little later.
    assert re.search(r"it comes back with 482\d of session \w+: 200, session \w+, first id [1-9]\n", run.stdout)
    ann_got = r"Ann kept her token and got (\d+) of 12 news, *Bob dropped his and got 12\)"
    found = re.search(ann_got, one_line(run.stdout))
    assert found
    assert int(found[1]) < 12


@needs_resumption
@pytest.mark.full
@pytest.mark.xdist_group("demo")
def test_another_verdict_than_the_scene_must_give_is_a_failure() -> None:
    other = """
import sys
from dataclasses import replace
from otel_mcp_resume.cli import demo, main
scene = next(scene for scene in demo.SCENES if scene.name == "given-up")
demo.SCENES = (replace(scene, wanted=(replace(scene.wanted[0], terms=("proven", "replayed_event")),)),)
sys.exit(main(sys.argv[1:]))
"""
    run = demo(program=other)
    assert run.returncode == 1, run.stdout + run.stderr
    said = verdicts(run.stdout)["given-up"]
    assert said.startswith("wanted client: proven, replayed_event, got client: abandoned, retries_exhausted")


@needs_resumption
@pytest.mark.full
@pytest.mark.xdist_group("demo")
def test_a_server_that_cannot_start_is_told() -> None:
    broken = """
import sys
from dataclasses import replace
from otel_mcp_resume.cli import demo, main
demo.SCENES = (replace(demo.SCENES[0], servers={"server": ("--store", "no-such-store")}),)
sys.exit(main(sys.argv[1:]))
"""
    run = demo(program=broken)
    assert run.returncode == 1
    assert "resume-server ended unexpectedly:" in run.stdout
    assert "no-such-store" in run.stdout


def test_a_scene_that_does_not_exist_is_a_wrong_call() -> None:
    run = demo("--scene", "no-such-scene")
    assert run.returncode == 2
    assert "resume" in run.stderr


def test_without_mcp_it_says_what_to_install() -> None:
    run = demo(program=f"import sys; sys.modules['mcp'] = None\n{RUN}")
    assert run.returncode == 2
    assert run.stderr == (
        "otel-mcp-resume demo: the package mcp is not installed. pip install 'otel-mcp-resume[demo]'\n"
    )


@pytest.mark.skipif(RESUMES, reason="this release of mcp is new enough")
def test_with_an_mcp_that_is_too_old_it_says_so() -> None:
    run = demo()
    assert run.returncode == 2
    assert "1.23" in run.stderr


@pytest.mark.parametrize(("found", "enough"), [("1.22.9", False), ("1.23.0", True), ("2.0.1", True), ("2.3.0b1", True)])
def test_the_oldest_release_that_will_do(found: str, *, enough: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otel_mcp_resume.cli.demo.version", lambda _: found)
    assert (missing() == "") is enough


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], Callable[[], list[int]]]]:
    """A demo under way, and a way to find all the processes that are left of it."""
    mark = f"DEMO_TEST={uuid.uuid4()}"
    name, _, value = mark.partition("=")

    def left() -> list[int]:
        found: list[int] = []
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark.encode() in environ.read_bytes():
                    found.append(int(environ.parent.name))
            except OSError:
                continue  # it ended meanwhile, or is not ours to look at
        return found

    process = subprocess.Popen(
        [sys.executable, "-c", RUN, "demo", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, name: value},
        start_new_session=True,
    )
    try:
        yield process, left
    finally:
        process.kill()
        process.communicate()
        for pid in left():
            os.kill(pid, signal.SIGKILL)


def wait_until_none(left: Callable[[], list[int]]) -> bool:
    deadline = time.monotonic() + 20
    while left() and time.monotonic() < deadline:
        time.sleep(0.1)
    return not left()


@needs_resumption
@needs_proc
@pytest.mark.full
@pytest.mark.xdist_group("demo")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -15), (signal.SIGKILL, -9)])
def test_no_process_outlives_it(number: signal.Signals, status: int) -> None:
    with running("--scene", "deploy") as (process, left):
        assert process.stdout
        told = ""
        while "deploying" not in told:
            line = process.stdout.readline()
            assert line, told
            told += line
        assert len(left()) == 4
        process.send_signal(number)
        output, errors = process.communicate(timeout=30)
        assert process.returncode == status
        assert wait_until_none(left)
        assert errors == ""
        assert output.endswith("Ended.\n") is (number == signal.SIGINT)


@needs_resumption
@needs_proc
@pytest.mark.full
@pytest.mark.xdist_group("demo")
def test_serving_plays_on_and_names_every_address_to_scrape() -> None:
    with running("--scene", "deploy", "--serve") as (process, left):
        assert process.stdout
        addresses, plays = list[str](), 0
        for line in process.stdout:
            addresses += re.findall(r"^  (http://127\.0\.0\.1:\d+/metrics)  deploy-\S+$", line)
            plays += "verdict: client: gap, session_changed" in line
            if plays == 2:
                break
        assert len(addresses) == len(set(addresses)) == 3
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert wait_until_none(left)

"""The plugin when its own parts break: the application's import goes on, and the fault is counted."""

from __future__ import annotations

import pytest

from tests.conftest import Environment

PREAMBLE = """
from otel_mcp_resume import activate, instrument, uninstrument
from otel_mcp_resume.plugin import Plugin
from otel_mcp_resume.report.store import Store
def broken(*args, **kwargs): raise RuntimeError('broken')
def faults():
    metrics = activate.current().metrics.collect()
    return sum(s.value for m in metrics for s in m.samples if s.name == 'mcp_resume_internal_errors_total')
"""
BREAKS = {
    "the hooks of a room": "import otel_mcp_resume.sdk.client as room; room.install = broken",
    "the module of a room": "import sys; sys.modules['otel_mcp_resume.sdk.client'] = None",
    "the beginning of a side": "from otel_mcp_resume.report.metrics import Metrics; Metrics.begin = broken",
    "the exporter": "from otel_mcp_resume.exporter import Exporter; Exporter.start = broken",
    "the versions": "import otel_mcp_resume.plugin as p; p.installed_version = broken",
}


@pytest.mark.full
@pytest.mark.parametrize("what", BREAKS)
def test_what_breaks_on_the_way_in_costs_the_application_nothing(installed: Environment, what: str) -> None:
    script = f"{PREAMBLE}\n{BREAKS[what]}\ninstrument()\nimport mcp.client.streamable_http\nprint(faults() >= 1)"
    run = installed.run(script)
    assert (run.returncode, run.stdout) == (0, "True\n"), run.stderr
    assert "Traceback" not in run.stderr.partition("otel-mcp-resume")[0]


@pytest.mark.full
@pytest.mark.parametrize("part", ["runtime.patches.remove_all", "deadlines.close", "exporter.stop"])
def test_what_breaks_on_the_way_out_does_not_keep_the_rest_in(installed: Environment, part: str) -> None:
    script = f"""{PREAMBLE}
instrument()
import mcp.client.streamable_http as client
plugin = activate.current()
owner = plugin
*path, name = {part.split(".")!r}
for step in path:
    owner = getattr(owner, step)
stop = getattr(owner, name)
setattr(type(owner), name, broken)
uninstrument()
print(activate.current())
print(hasattr(client.StreamableHTTPTransport.__dict__['post_writer'], '__wrapped__'))
"""
    run = installed.run(script)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["None", str(part == "runtime.patches.remove_all")]


@pytest.mark.full
def test_a_patch_that_cannot_be_taken_away_passes_everything_through(installed: Environment) -> None:
    script = f"""{PREAMBLE}
import mcp.client.streamable_http as client
T = client.StreamableHTTPTransport
calls = []
class Other:
    '''A wrapper that keeps what it wraps to itself.'''
    def __init__(self, inner): self.inner = inner
    def __call__(self, *args): return self.inner(*args)
original = T.__dict__['handle_get_stream']
instrument()
T.handle_get_stream = Other(T.__dict__['handle_get_stream'])
uninstrument()
kept = T.__dict__['handle_get_stream'].inner
assert kept.__wrapped__ is original
print(kept._self_enabled() if callable(kept._self_enabled) else kept._self_enabled)
"""
    run = installed.run(script)
    assert (run.returncode, run.stdout) == (0, "False\n"), run.stderr

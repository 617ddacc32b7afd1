from __future__ import annotations

from importlib.metadata import entry_points, requires

import pytest

from otel_mcp_resume import McpResumeInstrumentor
from tests.conftest import Environment


def test_the_entry_point_is_the_class() -> None:
    (entry_point,) = entry_points(group="opentelemetry_instrumentor", name="mcp_resume")
    assert entry_point.load() is McpResumeInstrumentor


def test_the_extra_that_the_loader_reads_names_the_same_versions() -> None:
    (wanted,) = McpResumeInstrumentor().instrumentation_dependencies()
    (extra,) = [
        each for each in requires("otel-mcp-resume") or [] if 'extra == "instruments"' in each.replace("'", '"')
    ]
    name, _, rest = wanted.replace(" ", "").partition(">=")
    lower, upper = rest.split(",")
    assert name == "mcp"
    assert set(extra.partition(";")[0].strip().removeprefix("mcp").split(",")) == {f">={lower}", upper}


@pytest.mark.full
def test_nothing_that_breaks_in_it_stops_the_instrumentors_of_others(installed: Environment) -> None:
    script = """
    from otel_mcp_resume import McpResumeInstrumentor, plugin
    def broken(*_): raise RuntimeError('broken')
    plugin.Plugin = broken
    McpResumeInstrumentor().instrument(skip_dep_check=True)
    McpResumeInstrumentor().uninstrument()
    print('goes on')
    """
    run = installed.run(script)
    assert (run.returncode, run.stdout) == (0, "goes on\n")
    assert "not enabled: RuntimeError('broken')" in run.stderr


@pytest.mark.full
def test_an_mcp_that_is_too_old_or_too_new_is_left_alone(installed: Environment) -> None:
    script = """
    from importlib import metadata
    from otel_mcp_resume import McpResumeInstrumentor, activate
    version = metadata.version
    metadata.version = lambda name: '3.0.0' if name == 'mcp' else version(name)
    from opentelemetry.instrumentation import dependencies
    dependencies.version = metadata.version
    McpResumeInstrumentor().instrument()
    print(activate.current())
    """
    run = installed.run(script)
    assert (run.returncode, run.stdout) == (0, "None\n"), run.stderr
    assert "mcp" in run.stderr

"""All ways to turn the plugin on and off, each in a process of its own with the wheel installed."""

from __future__ import annotations

import json
from itertools import permutations

import pytest

from tests.conftest import Environment

CLIENT, SERVER = "mcp.client.streamable_http", "mcp.server.streamable_http_manager"
REPORT = f"""
def report():
    import importlib, json, sys
    from otel_mcp_resume import activate
    plugin = activate.current()
    transport = sys.modules.get({CLIENT!r})
    original = transport and transport.StreamableHTTPTransport._handle_post_request
    depth = 0
    while hasattr(original, '__wrapped__'):
        original, depth = original.__wrapped__, depth + 1
    hooks = None if plugin is None else sorted(plugin.hooks.values())
    print(json.dumps({{'depth': depth, 'hooks': hooks, 'ways': [way.name for way in activate.ways()]}}))
"""
FUNCTION = "import otel_mcp_resume; otel_mcp_resume.instrument()"
INSTRUMENTOR = "from otel_mcp_resume import McpResumeInstrumentor as I; I().instrument()"
LOADER = "from otel_mcp_resume import McpResumeInstrumentor as I; I().instrument(skip_dep_check=True)"
IMPORT = f"import {CLIENT}, {SERVER}"


def reported(environment: Environment, *lines: str, **variables: str) -> dict[str, object]:
    run = environment.run("\n".join([REPORT, *lines, "report()"]), **variables)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    found: dict[str, object] = json.loads(run.stdout.splitlines()[-1])
    return found


def is_complete(found: dict[str, object]) -> bool:
    hooks = found["hooks"]
    return isinstance(hooks, list) and bool(hooks) and all(hooks) and found["depth"] == 1


@pytest.mark.parametrize("way", [FUNCTION, INSTRUMENTOR, LOADER])
def test_the_order_of_imports_does_not_matter(installed: Environment, way: str) -> None:
    assert is_complete(reported(installed, way, IMPORT))
    assert is_complete(reported(installed, IMPORT, way))


def test_what_is_never_imported_is_not_hooked_nor_imported_by_us(installed: Environment) -> None:
    found = reported(installed, FUNCTION, "import sys; assert not [n for n in sys.modules if n.split('.')[0] == 'mcp']")
    assert (found["hooks"], found["depth"]) == ([], 0)


@pytest.mark.full
@pytest.mark.parametrize("order", list(permutations([FUNCTION, INSTRUMENTOR, LOADER, IMPORT]))[::5])
def test_all_ways_together_end_in_one_plugin(installed: Environment, order: tuple[str, ...]) -> None:
    found = reported(installed, *order, *order, OTEL_MCP_RESUME="1")
    assert is_complete(found)
    assert set(map(str, found["ways"])) == {"ENVIRONMENT", "FUNCTION", "INSTRUMENTOR", "ENTRY_POINT"}  # type: ignore[call-overload]


@pytest.mark.apart
@pytest.mark.parametrize(("way", "off"), [(FUNCTION, "0"), (INSTRUMENTOR, "false"), (LOADER, "False")])
def test_0_wins_over_every_other_way(installed: Environment, way: str, off: str) -> None:
    found = reported(installed, way, IMPORT, way, OTEL_MCP_RESUME=off)
    assert found == {"depth": 0, "hooks": None, "ways": []}


@pytest.mark.apart
def test_under_opentelemetry_instrument_metrics_go_there(installed: Environment) -> None:
    where = "from otel_mcp_resume import activate; print(activate.current().settings.metrics)"
    script = f"{REPORT}\n{IMPORT}\nreport()\n{where}"
    quiet = {"OTEL_METRICS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}
    for environ in ({}, {"OTEL_MCP_RESUME": "1"}):
        run = installed.call("opentelemetry-instrument", "python", "-c", script, **quiet, **environ)
        assert run.returncode == 0, run.stderr
        found, metrics = run.stdout.splitlines()[-2:]
        assert is_complete(json.loads(found))
        assert "ENTRY_POINT" in json.loads(found)["ways"]
        assert metrics == "frozenset({'otel'})"


@pytest.mark.apart
@pytest.mark.parametrize(
    "variables", [{"OTEL_MCP_RESUME": "0"}, {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "mcp_resume"}]
)
def test_opentelemetry_instrument_can_leave_it_out(installed: Environment, variables: dict[str, str]) -> None:
    script = f"{REPORT}\n{IMPORT}\nreport()"
    run = installed.call("opentelemetry-instrument", "python", "-c", script, **variables)
    assert json.loads(run.stdout.splitlines()[-1]) == {"depth": 0, "hooks": None, "ways": []}, run.stderr


SNAPSHOT = """
import inspect
import mcp.client.streamable_http as client, mcp.server.streamable_http as server
import mcp.server.streamable_http_manager as manager
from mcp.client import sse as client_sse
from mcp.server import sse as server_sse
http = [m for m in map(sys.modules.get, ('httpx', 'httpx2')) if m]
owners = [client, server, manager, client_sse, server_sse, *http, client.StreamableHTTPTransport]
owners += [server.StreamableHTTPServerTransport, manager.StreamableHTTPSessionManager, server_sse.SseServerTransport]
owners += [m.AsyncClient for m in http]
def snapshot():
    return [dict(vars(owner)) for owner in owners]
def same(one, other):
    return all(a.keys() == b.keys() and all(a[k] is b[k] for k in a) for a, b in zip(one, other))
"""


@pytest.mark.parametrize("off", ["otel_mcp_resume.uninstrument()", "I().uninstrument()"])
@pytest.mark.parametrize("on", [FUNCTION, INSTRUMENTOR])
def test_uninstrument_restores_the_identical_objects(installed: Environment, on: str, off: str) -> None:
    script = f"""
    import otel_mcp_resume, sys
    from otel_mcp_resume import McpResumeInstrumentor as I
    {SNAPSHOT.strip().replace(chr(10), chr(10) + "    ")}
    before = snapshot()
    for _ in range(3):
        {on}
        assert not same(before, snapshot())
        {off}
        assert same(before, snapshot())
        assert not I().is_instrumented_by_opentelemetry
    """
    run = installed.run(script)
    assert (run.returncode, run.stderr) == (0, "")


def test_uninstrument_leaves_the_wrappers_of_others(installed: Environment) -> None:
    script = """
    import otel_mcp_resume, wrapt
    from mcp.client.streamable_http import StreamableHTTPTransport as T
    original = T.__dict__['_handle_post_request']
    otel_mcp_resume.instrument()
    theirs = wrapt.FunctionWrapper(T.__dict__['_handle_post_request'], lambda w, i, a, k: w(*a, **k))
    T._handle_post_request = theirs
    otel_mcp_resume.uninstrument()
    assert T.__dict__['_handle_post_request'] is theirs
    assert theirs.__wrapped__ is original
    otel_mcp_resume.instrument()
    otel_mcp_resume.uninstrument()
    assert T.__dict__['_handle_post_request'] is theirs
    """
    run = installed.run(script)
    assert (run.returncode, run.stderr) == (0, "")


def test_after_uninstrument_a_later_import_is_left_alone(installed: Environment) -> None:
    found = reported(installed, FUNCTION, "otel_mcp_resume.uninstrument()", IMPORT)
    assert (found["hooks"], found["depth"]) == (None, 0)
    again = reported(installed, FUNCTION, "otel_mcp_resume.uninstrument()", IMPORT, FUNCTION)
    assert is_complete(again)


@pytest.mark.parametrize(
    "off", ["otel_mcp_resume.uninstrument()", "otel_mcp_resume.McpResumeInstrumentor().uninstrument()"]
)
def test_uninstrument_before_anything_is_imported_holds_against_the_variable(installed: Environment, off: str) -> None:
    found = reported(installed, f"import otel_mcp_resume; {off}", IMPORT, OTEL_MCP_RESUME="1")
    assert (found["hooks"], found["depth"]) == (None, 0)


@pytest.mark.full
def test_many_threads_at_once_make_one_plugin(installed: Environment) -> None:
    script = f"""
    import sys, threading
    from importlib import import_module
    import otel_mcp_resume
    from otel_mcp_resume import activate
    sys.setswitchinterval(1e-5)
    seen, start = [], threading.Barrier(16)
    def turn_on(number):
        start.wait()
        if number == 0:  # Python itself is not up to several threads that import parts of one package
            import_module({CLIENT!r})
            import_module({SERVER!r})
        otel_mcp_resume.instrument()
        seen.append(activate.current())
    threads = [threading.Thread(target=turn_on, args=(n,)) for n in range(16)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    assert not any(t.is_alive() for t in threads)
    assert len(seen) == 16 and len(set(map(id, seen))) == 1
    """
    lines = [line.removeprefix("    ") for line in script.splitlines()]
    assert is_complete(reported(installed, *lines))


@pytest.mark.full
def test_providers_are_kept_whichever_way_brings_them(installed: Environment) -> None:
    script = """
    from otel_mcp_resume import McpResumeInstrumentor, activate, instrument
    instrument()
    McpResumeInstrumentor().instrument(tracer_provider='t')
    instrument(tracer_provider='late', meter_provider='m')
    print(activate.current().providers)
    """
    assert installed.run(script).stdout == "Providers(tracer_provider='t', meter_provider='m')\n"


@pytest.mark.full
def test_bad_variables_cost_one_warning_each(installed: Environment) -> None:
    script = f"import {CLIENT}, {SERVER}; from otel_mcp_resume import activate; assert activate.current()"
    bad = {"OTEL_MCP_RESUME_PROOF_TIMEOUT": "soon", "OTEL_MCP_RESUME_MAX_EVENTS": "-1"}
    run = installed.run(script, OTEL_MCP_RESUME="1", **bad)
    assert run.returncode == 0
    for name, value in bad.items():
        assert run.stderr.count(f"{name}='{value}'") == 1
    assert len(run.stderr.splitlines()) == len(bad)


def test_the_end_of_the_interpreter_is_quiet(installed: Environment) -> None:
    script = f"""
    import asyncio
    from {CLIENT} import StreamableHTTPTransport
    from otel_mcp_resume import activate
    class Late:
        def expire(self): raise SystemError
    late = Late()
    activate.current().deadlines.add(late)
    async def forever():
        await asyncio.sleep(60)
    loop = asyncio.new_event_loop()
    task = loop.create_task(forever())
    loop.run_until_complete(asyncio.sleep(0))
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    """
    run = installed.run(script, OTEL_MCP_RESUME="1", OTEL_EXPORTER_PROMETHEUS_PORT="0")
    assert run.returncode == 0
    assert [line for line in run.stderr.splitlines() if "/metrics is at" not in line] == []


@pytest.mark.full
@pytest.mark.parametrize(
    ("library", "way"),
    [("wrapt", FUNCTION), ("prometheus_client", FUNCTION), ("prometheus_client", INSTRUMENTOR)],
)
def test_a_missing_library_is_a_warning(installed: Environment, library: str, way: str) -> None:
    script = f"import sys; sys.modules[{library!r}] = None\n{way}\n{IMPORT}\nprint('goes on')"
    run = installed.run(script)
    assert (run.returncode, run.stdout) == (0, "goes on\n"), run.stderr
    assert run.stderr.count("otel-mcp-resume: not enabled") == 1
    assert library in run.stderr

"""An `mcp` in which a name that we hook into is gone: every release may rename what is private.

Each name is renamed in the source of the whole SDK while it is imported, so that the SDK itself keeps working.
"""

from __future__ import annotations

import json
from importlib import import_module

import pytest

from otel_mcp_resume.rooms import ROOMS
from tests.conftest import Environment

pytestmark = pytest.mark.full

NO_METHOD_TO_RENAME = ("__init__", "__call__")
HOOKS = sorted(
    hook for room in ROOMS for hook in import_module(room.hooks).HOOKS if not hook.endswith(NO_METHOD_TO_RENAME)
)

RENAMED = """
import re, sys
from importlib.machinery import PathFinder, SourceFileLoader

class Renaming(SourceFileLoader):
    def get_data(self, path):
        return re.sub(rb'\\b%(name)s\\b', b'%(name)s_of_tomorrow', super().get_data(path))
    def path_stats(self, path):
        raise OSError('no bytecode from before')

class Finder:
    def find_spec(self, name, path=None, target=None):
        if not name.startswith('mcp.'):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin and spec.origin.endswith('.py'):
            spec.loader = Renaming(name, spec.origin)
        return spec

sys.meta_path.insert(1, Finder())  # behind the one of the plugin
"""
SESSION = """
import asyncio, json, logging, socket, threading
import uvicorn
from otel_mcp_resume import activate
from otel_mcp_resume.cli.demo.sdk import client_session, http_app, result_text

def double(number: int) -> str:
    return str(2 * number)

listener = socket.create_server(('127.0.0.1', 0))
server = uvicorn.Server(uvicorn.Config(http_app([double]), log_level='error'))
thread = threading.Thread(target=server.run, kwargs={'sockets': [listener]})
thread.start()

async def main():
    async with client_session(f'http://127.0.0.1:{listener.getsockname()[1]}/mcp') as session:
        return result_text(await session.call_tool('double', {'number': 21}))

answer = asyncio.run(main())
server.should_exit = True
thread.join(30)
gauges = {}
errors = 0
for metric in activate.current().metrics.collect():
    for sample in metric.samples:
        if sample.name == 'mcp_resume_hook_installed':
            gauges[sample.labels['hook']] = sample.value
        if sample.name == 'mcp_resume_internal_errors_total':
            errors += sample.value
print(json.dumps([answer, gauges, errors]))
"""


@pytest.mark.parametrize("hook", HOOKS)
def test_the_application_runs_and_the_blindness_is_told_once(installed: Environment, hook: str) -> None:
    name = hook.rpartition(".")[2]
    run = installed.run(RENAMED % {"name": name} + SESSION, OTEL_MCP_RESUME="1")
    assert run.returncode == 0, run.stderr
    answer, gauges, errors = json.loads(run.stdout.splitlines()[-1])
    assert answer == "42"
    assert errors == 0
    missing = {known for known, value in gauges.items() if value == 0}
    assert hook in missing
    assert {known.rpartition(".")[2] for known in missing} == {name}
    warnings = [line for line in run.stderr.splitlines() if "partly blind" in line]
    assert len(warnings) == 1
    assert all(known in warnings[0] for known in missing)


def test_nothing_is_missing_in_the_sdk_of_today(installed: Environment) -> None:
    run = installed.run(SESSION, OTEL_MCP_RESUME="1")
    answer, gauges, errors = json.loads(run.stdout.splitlines()[-1])
    assert (answer, errors) == ("42", 0)
    assert set(gauges) >= set(HOOKS)
    assert set(gauges.values()) == {1}
    assert "blind" not in run.stderr

"""A process that forks after the plugin is on, as gunicorn and multiprocessing do."""

from __future__ import annotations

import pytest

from tests.conftest import Environment

FORKED = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads: that is what this is about
import mcp.client.streamable_http
from otel_mcp_resume import activate
from otel_mcp_resume.rules.terms import Generation, Side
from otel_mcp_resume.watch.facts import SessionOpened

plugin = activate.current()
FACT = SessionOpened(Side.CLIENT, Generation.STREAMABLE_HTTP)
OPEN = 'mcp_resume_open_sessions', {'side': 'client', 'generation': 'streamable_http'}

class Item:
    def __init__(self): self.told = threading.Event()
    def expire(self): self.told.set()

def value(name, labels):
    metrics = list(plugin.metrics.collect())
    return [s.value for m in metrics for s in m.samples if s.name == name and s.labels == labels]

def in_child(check):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            check()
            code = 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    for _ in range(600):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, status
            return
        time.sleep(0.1)
    os.kill(pid, 9)
    raise AssertionError('the child hangs')
"""


def test_a_child_counts_for_itself_and_keeps_time(installed: Environment) -> None:
    script = (
        FORKED
        + """
plugin.deadlines.add(Item())
plugin.runtime.report([FACT])
assert value(*OPEN) == [1]
def check():
    assert value(*OPEN) == [0]
    plugin.runtime.report([FACT, FACT])
    assert value(*OPEN) == [2]
    item = Item()
    plugin.deadlines.add(item)
    assert item.told.wait(20)
in_child(check)
assert value(*OPEN) == [1]
"""
    )
    run = installed.run(script, OTEL_MCP_RESUME="1", OTEL_MCP_RESUME_PROOF_TIMEOUT="0.2")
    assert (run.returncode, run.stderr) == (0, "")


def test_a_lock_that_another_thread_held_at_the_fork_is_no_trap(installed: Environment) -> None:
    script = (
        FORKED
        + """
locks = [activate._state.lock, plugin._turns._lock, plugin.metrics._lock, plugin.deadlines._changed,
         plugin.errors._lock, plugin.runtime.client.lock, plugin.runtime.server._state.lock]
held, done = threading.Event(), threading.Event()
def hold():
    for lock in locks:
        lock.acquire()
    held.set()
    done.wait()
    for lock in locks:
        lock.release()
holder = threading.Thread(target=hold)
holder.start()
held.wait()
def check():
    plugin.runtime.report([FACT])
    plugin.deadlines.add(Item())
    plugin.errors('x', ValueError())
    activate.instrument()
    activate.uninstrument()
    activate.instrument()
    import mcp.server.streamable_http_manager
    assert all(activate.current().hooks.values())
in_child(check)
done.set()
holder.join()
"""
    )
    run = installed.run(script, OTEL_MCP_RESUME="1")
    assert run.returncode == 0, run.stderr


@pytest.mark.full
def test_a_child_serves_its_own_metrics_once_it_has_any(installed: Environment) -> None:
    script = (
        FORKED
        + """
from urllib.request import urlopen
def served():
    return urlopen(plugin.exporter.url).read().decode()
assert 'mcp_resume_open_sessions' in served()
first = plugin.exporter.url
def check():
    assert plugin.exporter.url is None
    plugin.runtime.report([FACT])
    assert plugin.exporter.url not in (None, first)
    assert 'side="client"} 1.0' in served()
in_child(check)
assert plugin.exporter.url == first
assert 'mcp_resume_open_sessions' in served()
"""
    )
    run = installed.run(script, OTEL_MCP_RESUME="1", OTEL_EXPORTER_PROMETHEUS_PORT="0")
    assert run.returncode == 0, run.stderr


@pytest.mark.full
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_children_have_their_hooks(installed: Environment, method: str) -> None:
    script = f"""
import multiprocessing, sys
def child(queue):
    import mcp.client.streamable_http
    from otel_mcp_resume import activate
    queue.put(sorted(activate.current().hooks.values()))
if __name__ == '__main__':
    import mcp.client.streamable_http
    context = multiprocessing.get_context({method!r})
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    hooks = queue.get(timeout=60)
    process.join(60)
    assert hooks and all(hooks), hooks
    assert process.exitcode == 0
"""
    path = installed.python.parent / f"spawner_{method}.py"
    path.write_text(script)
    run = installed.call(installed.python, path, OTEL_MCP_RESUME="1")
    assert (run.returncode, run.stderr) == (0, "")

"""`uninstrument()` in the middle of a call: `python -m tests.lifetime.leaving`. Says nothing if nothing is wrong.

Once alone, and once with wrappers of another library around every function that was hooked.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import warnings
from typing import Any

import wrapt

os.environ.update(OTEL_EXPORTER_PROMETHEUS_PORT="none")
warnings.simplefilter("ignore")
logging.disable()  # faults of ours are counted, and both libraries have much to say

from otel_mcp_resume import activate  # noqa: E402 - once the environment is what it should be
from tests.lifetime.pair import MOMENTS, pair  # noqa: E402 - see above

PACKAGES = ("mcp", "httpx", "httpx2", "httpcore", "httpcore2", "httpx_sse", "starlette", "sse_starlette", "anyio")


def functions() -> dict[tuple[Any, str], Any]:
    """Everything that can be called in all modules and classes that are hooked into, or could be."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in PACKAGES]
    owners: dict[int, Any] = {id(module): module for module in modules}
    for module in modules:
        owners |= {id(each): each for each in vars(module).values() if isinstance(each, type)}
    return {
        (owner, name): value
        for owner in owners.values()
        for name, value in vars(owner).items()
        if callable(value) and (name in ("__init__", "__call__") or not name.startswith(("__", "_abc")))
    }


async def call() -> list[str]:
    async with pair() as both:
        return await both.call("one")


async def leaving(moment: str, *, wrapped: bool) -> None:
    """The plugin comes before the pair, and goes at that moment."""
    before = functions()
    assert activate.instrument()
    plugin = activate.current()
    assert plugin is not None
    hooked = {key: value for key, value in functions().items() if before.get(key) is not value}
    assert len(hooked) == sum(plugin.hooks.values()) > 0, (len(hooked), plugin.hooks)
    calls: list[str] = []
    theirs: dict[tuple[Any, str], Any] = {}
    if wrapped:
        for (owner, name), value in hooked.items():
            theirs[owner, name] = _wrapped(owner, name, value, calls)

    async def goes(reached: str) -> None:
        if reached == moment:
            await asyncio.to_thread(activate.uninstrument) if moment == "cut" else activate.uninstrument()
            check()

    def check() -> None:
        now = functions()
        for key, value in before.items():
            expected = theirs.get(key, value)
            assert now[key] is expected, f"{key} is not what it was"
            assert key not in theirs or expected.__wrapped__ is value, f"{key} has us inside"

    async with pair() as both:
        both.reached = goes
        calls.clear()
        assert await both.call("one") == EXPECTED, (moment, wrapped)
        calls.clear()
        assert await both.call("two") == [text.replace("one", "two") for text in EXPECTED], (moment, wrapped)
        assert bool(calls) == wrapped
    assert activate.current() is None
    counted = [s for f in plugin.metrics.collect() for s in f.samples if s.name == "mcp_resume_internal_errors_total"]
    assert not [sample for sample in counted if sample.value], counted
    check()
    for (owner, name), value in before.items():
        if (owner, name) in theirs:
            setattr(owner, name, value)


def _wrapped(owner: Any, name: str, value: Any, calls: list[str]) -> Any:
    def noting(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
        calls.append(name)
        return wrapped(*args, **kwargs)

    wrapper = wrapt.FunctionWrapper(value, noting)
    setattr(owner, name, wrapper)
    return wrapper


EXPECTED = asyncio.run(call())


async def main() -> None:
    problems: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(str(context)))
    for moment in MOMENTS:
        for wrapped in (False, True):
            await leaving(moment, wrapped=wrapped)
    assert not problems, problems


if __name__ == "__main__":
    assert EXPECTED == ["one 0", "one 1", "one 2", "played"], EXPECTED
    asyncio.run(main())

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from otel_mcp_resume.cli.demo import missing

if missing():
    pytest.skip("the demo needs a newer mcp", allow_module_level=True)

from otel_mcp_resume.cli.demo import tools

EVERY = 0.05


def subscribe(items: int, **when: Any) -> tuple[str, list[str]]:
    """The result of the call, and what is sent, until the last item is."""
    sent: list[str] = []

    async def run() -> str:
        last = asyncio.Event()

        async def send_log_message(_level: str, text: str) -> None:
            sent.append(text)
            if text == f"n {items}":
                last.set()

        context: Any = SimpleNamespace(session=SimpleNamespace(send_log_message=send_log_message))
        result = await tools.news(context, items=items, every=EVERY, name="n", **when)
        await asyncio.wait_for(last.wait(), 20)
        return result

    return asyncio.run(run()), sent


def test_a_new_newsroom_opens_when_the_call_is_there_however_late_that_is() -> None:
    earliest = time.time()
    result, sent = subscribe(3)
    assert sent == ["n 1", "n 2", "n 3"]
    assert earliest <= float(result) <= time.time()


def test_what_came_out_before_is_the_result_and_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "time", SimpleNamespace(time=lambda: 1000.0))
    result, sent = subscribe(1000, started=1000.0 - 999.5 * EVERY, after=996)
    assert result == "n 997, n 998, n 999"
    assert sent == ["n 1000"]

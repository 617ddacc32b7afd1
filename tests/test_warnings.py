"""Whoever turns the plugin on is told what is wrong, and told without harm."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from otel_mcp_resume import activate
from otel_mcp_resume.plugin import Plugin, Providers
from otel_mcp_resume.report import names
from otel_mcp_resume.report.fields import PLUGIN_LOGGER
from otel_mcp_resume.settings import Settings


class Broken(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise OSError("disk full")


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugin]:
    """One that is on, in an application whose log is broken."""
    logger, handler = logging.getLogger(PLUGIN_LOGGER), Broken()
    made = Plugin(Settings(prometheus_port=None), Providers())
    monkeypatch.setattr(activate._state, "plugin", made)
    logger.addHandler(handler)
    yield made
    logger.removeHandler(handler)
    made.close()


def faults(plugin: Plugin) -> float:
    return sum(value for _, value in plugin.metrics.read(names.INTERNAL_ERRORS))


def test_a_log_that_is_broken_is_counted_and_raises_nothing(plugin: Plugin) -> None:
    activate._warn(["a setting makes no sense"])
    assert faults(plugin) == 1


def test_nothing_is_counted_where_there_is_nothing_to_tell(plugin: Plugin) -> None:
    activate._warn([])
    assert faults(plugin) == 0


def test_without_a_plugin_there_is_nothing_to_count_in(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activate._state, "plugin", None)
    activate._warn(["not enabled"])
    assert faults(plugin) == 0

from __future__ import annotations

import subprocess
import sys

import pytest

import otel_mcp_resume


@pytest.mark.parametrize("name", otel_mcp_resume.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(otel_mcp_resume, name) is not None
    assert name in dir(otel_mcp_resume)
    assert getattr(otel_mcp_resume, name) is vars(otel_mcp_resume)[name], "found without us from now on"


def test_all_and_the_homes_of_names_agree() -> None:
    assert sorted(otel_mcp_resume._HOMES) == sorted(otel_mcp_resume.__all__)


def test_other_names_are_an_attribute_error_that_names_them() -> None:
    with pytest.raises(AttributeError, match="no attribute 'resume_everything'"):
        _ = otel_mcp_resume.resume_everything


def test_the_package_alone_imports_nothing_else_of_ours() -> None:
    script = "import sys, otel_mcp_resume; print([n for n in sys.modules if n.startswith('otel_mcp_resume.')])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_the_rule_needs_neither_mcp_nor_any_exporter() -> None:
    script = """
import sys
from otel_mcp_resume import StreamCursor, Verdict, resume_stream, verify_resumption, ResumptionGapError, Outcome, Reason
heavy = {"mcp", "wrapt", "prometheus_client", "opentelemetry", "structlog", "httpx", "httpx2"}
print(heavy & {name.partition(".")[0] for name in sys.modules})
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"

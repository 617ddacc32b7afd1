"""What is installed, also where it is broken."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from otel_mcp_resume.versions import has_module, installed_version


def test_a_version_and_none() -> None:
    assert installed_version("mcp") == version("mcp")
    assert installed_version("no-such-distribution") == ""


def test_a_module_is_there_or_not() -> None:
    assert has_module("mcp.client.streamable_http")
    assert not has_module("mcp.no_such_module")
    assert not has_module("no_such_package.module")


def test_a_package_that_cannot_be_imported_has_no_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "spoiled_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('spoiled')")
    (package / "module.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not has_module("spoiled_package.module")

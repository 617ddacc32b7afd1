"""The startup files as users get them: by a wheel and by an editable install, each in a fresh virtual environment."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import Environment

OURS_ALONE = {"otel_mcp_resume", "otel_mcp_resume._startup"}
OURS_AND_HEAVY = ("otel_mcp_resume", "wrapt", "prometheus_client", "structlog", "opentelemetry")
LOADED = f"""
import json, sys
print(json.dumps(sorted(name for name in sys.modules if name.partition('.')[0] in {OURS_AND_HEAVY!r})))
"""
HOOKS = """
from otel_mcp_resume import activate
print(activate.current() is not None and all(activate.current().hooks.values()), activate.ways())
"""


@pytest.fixture(
    scope="module",
    params=[
        "installed",
        pytest.param("editable", marks=[pytest.mark.xdist_group("editable"), pytest.mark.full]),
    ],
)
def environment(request: pytest.FixtureRequest) -> Environment:
    found: Environment = request.getfixturevalue(request.param)
    return found


def loaded(environment: Environment, script: str, **variables: str) -> set[str]:
    run = environment.run(script + LOADED, **variables)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return set(json.loads(run.stdout))


def test_both_forms_are_at_the_root_of_site_packages(environment: Environment) -> None:
    record = next(environment.site_packages.glob("otel_mcp_resume-*.dist-info/RECORD")).read_text()
    for name in ("otel_mcp_resume.pth", "otel_mcp_resume.start"):
        assert (environment.site_packages / name).is_file()
        assert f"\n{name}," in f"\n{record}", "an uninstall would leave it behind"


@pytest.mark.apart
@pytest.mark.parametrize("value", [None, "", "0", "FALSE"])
def test_without_the_variable_nothing_of_ours_is_imported(environment: Environment, value: str | None) -> None:
    variables = {} if value is None else {"OTEL_MCP_RESUME": value}
    ours = {name for name in loaded(environment, "import mcp", **variables) if name.startswith("otel_mcp_resume")}
    assert ours == set()


@pytest.mark.apart
def test_without_the_variable_the_import_log_of_a_start_does_not_name_us(environment: Environment) -> None:
    run = environment.run("import mcp", "-X", "importtime")
    assert "mcp" in run.stderr
    assert "otel_mcp_resume" not in run.stderr


def test_a_process_without_mcp_imports_the_waiting_finder_and_no_more(environment: Environment) -> None:
    assert loaded(environment, "import http.server", OTEL_MCP_RESUME="1") == OURS_ALONE


@pytest.mark.full
def test_the_waiting_finder_imports_next_to_nothing_itself(environment: Environment) -> None:
    bare = environment.run("import sys; print(len(sys.modules))")
    waiting = environment.run("import sys; print(len(sys.modules))", OTEL_MCP_RESUME="1")
    assert int(waiting.stdout) - int(bare.stdout) <= len(OURS_ALONE) + 1  # and __future__


@pytest.mark.full
def test_looking_for_mcp_is_no_import(environment: Environment) -> None:
    script = "import importlib.util; assert importlib.util.find_spec('mcp')"
    assert loaded(environment, script, OTEL_MCP_RESUME="1") == OURS_ALONE


@pytest.mark.parametrize("value", ["1", " True "])
def test_the_variable_alone_puts_all_hooks_in_place(environment: Environment, value: str) -> None:
    script = "import mcp.client.streamable_http, mcp.server.streamable_http_manager" + HOOKS
    run = environment.run(script, OTEL_MCP_RESUME=value)
    assert run.stdout.startswith("True "), run
    assert run.stderr == ""


@pytest.mark.full
def test_a_bad_value_is_named_when_it_matters_and_enables_nothing(environment: Environment) -> None:
    assert environment.run("import json", OTEL_MCP_RESUME="maybe").stderr == ""
    run = environment.run("import mcp.client.streamable_http" + HOOKS, OTEL_MCP_RESUME="maybe")
    assert run.stdout == "False []\n"
    assert run.stderr.count("OTEL_MCP_RESUME='maybe'") == 1


@pytest.mark.full
def test_the_lines_may_run_any_number_of_times(environment: Environment) -> None:
    script = f"""
    import site, sys
    for _ in range(3):
        site.addsitedir({str(environment.site_packages)!r})
    print([type(finder).__name__ for finder in sys.meta_path].count("_WaitForMcp"))
    """
    run = environment.run(script, OTEL_MCP_RESUME="1")
    assert (run.stdout, run.stderr) == ("1\n", "")


@pytest.mark.full
def test_a_line_whose_package_is_gone_says_so_and_goes_on(environment: Environment, tmp_path: Path) -> None:
    shutil.copy(environment.site_packages / "otel_mcp_resume.pth", tmp_path)
    script = f"import site; site.addsitedir({str(tmp_path)!r}); print('goes on')"
    run = environment.run(script, "-S", OTEL_MCP_RESUME="1")
    assert (run.returncode, run.stdout) == (0, "goes on\n")
    assert "otel-mcp-resume: not enabled" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.full
@pytest.mark.parametrize(("value", "enabled"), [("1", True), ("", False), ("0", False)])
def test_the_start_form_does_the_same(environment: Environment, value: str, enabled: bool) -> None:
    where = environment.run("import otel_mcp_resume, pathlib; print(pathlib.Path(otel_mcp_resume.__file__).parents[1])")
    path = f"{where.stdout.strip()}{os.pathsep}{environment.site_packages}"
    called = (environment.site_packages / "otel_mcp_resume.start").read_text().strip()
    script = f"import pkgutil; pkgutil.resolve_name({called!r})()\nimport mcp.client.streamable_http" + HOOKS
    # Python 3.15 leaves the `.pth` file of the same stem alone, and calls this instead; -S leaves out both.
    run = environment.run(script, "-S", PYTHONPATH=path, OTEL_MCP_RESUME=value)
    assert run.stdout.startswith(str(enabled)), run


def test_an_import_that_the_plugin_cannot_follow_goes_on(environment: Environment) -> None:
    script = "import sys; sys.modules['prometheus_client'] = None\nimport mcp.client.streamable_http; print('imported')"
    run = environment.run(script, OTEL_MCP_RESUME="1")
    assert (run.returncode, run.stdout) == (0, "imported\n")
    assert run.stderr.count("otel-mcp-resume: not enabled") == 1
    assert "prometheus_client" in run.stderr

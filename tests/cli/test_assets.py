"""`otel-mcp-resume assets` as users run it: from the wheel, in a fresh virtual environment without mcp's help."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from otel_mcp_resume.cli import main
from otel_mcp_resume.cli.assets import shipped
from tests.conftest import SOURCE, Environment

KINDS = ("alerts", "dashboards")


def written(directory: Path) -> dict[str, bytes]:
    paths = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


def of_the_source_tree() -> dict[str, bytes]:
    """What users need of it, said in another way than the command says it."""
    everything = {
        path.relative_to(SOURCE).as_posix(): path.read_bytes()
        for kind in KINDS
        for path in (SOURCE / kind).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    return {
        name: content
        for name, content in everything.items()
        if not name.startswith("alerts/tests/")
        and not name.endswith(".png")
        and (not name.endswith(".py") or name == "alerts/generate.py")
    }


def test_the_wheel_brings_everything_and_nothing_else(installed: Environment, tmp_path: Path) -> None:
    run = installed.call("otel-mcp-resume", "assets", str(tmp_path / "new" / "place"))
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    found = written(tmp_path / "new" / "place")
    assert found == of_the_source_tree()
    for kind in KINDS:
        count = sum(name.startswith(f"{kind}/") for name in found)
        assert f"{tmp_path / 'new' / 'place' / kind}: {count} files, see " in run.stdout


def test_an_editable_install_writes_the_same(editable: Environment, tmp_path: Path) -> None:
    run = editable.call("otel-mcp-resume", "assets", str(tmp_path))
    assert run.returncode == 0, run.stderr
    assert written(tmp_path) == of_the_source_tree()


def test_the_package_has_nothing_else_in_it(installed: Environment) -> None:
    assets = installed.site_packages / "otel_mcp_resume" / "assets"
    assert written(assets) == of_the_source_tree()


def test_the_help_names_the_command(installed: Environment) -> None:
    run = installed.call("otel-mcp-resume", "--help")
    assert "assets" in run.stdout


@pytest.mark.parametrize(("options", "kinds"), [
    (["--only", "alerts"], {"alerts"}),
    (["--only", "dashboards"], {"dashboards"}),
    (["--only", "dashboards", "--only", "alerts"], set(KINDS)),
    ([], set(KINDS)),
])  # fmt: skip
def test_only_what_is_asked_for_is_written(options: list[str], kinds: set[str], tmp_path: Path) -> None:
    assert main(["assets", str(tmp_path), *options]) == 0
    assert {path.name for path in tmp_path.iterdir()} == kinds


def test_a_second_time_changes_nothing_and_is_no_fault(tmp_path: Path) -> None:
    assert main(["assets", str(tmp_path)]) == 0
    before = written(tmp_path)
    assert main(["assets", str(tmp_path)]) == 0
    assert written(tmp_path) == before


def test_a_file_that_differs_is_left_alone_unless_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = tmp_path / "alerts" / "alertmanager.example.yml"
    changed.parent.mkdir()
    changed.write_text("mine\n")
    assert main(["assets", str(tmp_path)]) == 1
    assert "alerts/alertmanager.example.yml" in capsys.readouterr().err
    assert written(tmp_path) == {"alerts/alertmanager.example.yml": b"mine\n"}
    assert main(["assets", str(tmp_path), "--force"]) == 0
    assert changed.read_text() != "mine\n"


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["assets", str(tmp_path / "file")]) == 1
    assert "otel-mcp-resume assets:" in capsys.readouterr().err


def test_a_kind_that_does_not_exist_is_a_wrong_call(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as error:
        main(["assets", str(tmp_path), "--only", "coffee"])
    assert error.value.code == 2
    assert list(tmp_path.iterdir()) == []


def test_what_is_written_works_where_it_lies(tmp_path: Path) -> None:
    """The files refer to one another across the two directories."""
    assert main(["assets", str(tmp_path)]) == 0
    compose = yaml.safe_load((tmp_path / "dashboards" / "compose.yml").read_text())
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            assert (tmp_path / "dashboards" / volume.split(":")[0]).exists()
    promtool = shutil.which("promtool")
    if promtool is not None:
        command = [promtool, "check", "config", str(tmp_path / "dashboards" / "prometheus.yml")]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        assert "3 rule files found" in run.stdout


def test_every_file_has_a_name_of_its_own() -> None:
    names = [name for name, _ in shipped(*KINDS)]
    assert len(set(names)) == len(names)
    assert names == sorted(names)

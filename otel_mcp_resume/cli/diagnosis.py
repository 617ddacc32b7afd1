"""What `doctor` finds out: one frozen record of how the plugin stands in this environment."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from otel_mcp_resume._startup import VARIABLE
from otel_mcp_resume.activate import ENTRY_POINT, Way, default_metrics, is_auto_instrumented
from otel_mcp_resume.cli.destinations import destinations
from otel_mcp_resume.settings import Settings
from otel_mcp_resume.versions import installed_version

if TYPE_CHECKING:
    from otel_mcp_resume.cli.probe import Findings

__all__ = ["Activation", "Diagnosis", "Setting", "diagnose"]

_PATIENCE = 60.0
"""Seconds for a fresh interpreter to import `mcp`."""
_QUIET = {
    VARIABLE: "1",
    "OTEL_EXPORTER_PROMETHEUS_PORT": "none",
    "OTEL_MCP_RESUME_METRICS": "none",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_TRACES_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
}
"""The probe looks and leaves: it serves and sends nothing."""


@dataclass(frozen=True, slots=True)
class Activation:
    """One of the ways to turn the plugin on. In force is None where only the application's code can tell."""

    way: str
    in_force: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that applies, and where it came from."""

    name: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """How the plugin stands."""

    version: str
    python: str
    executable: str
    mcp_version: str
    """Empty if it is not installed."""
    mcp_importable: bool
    enabled: bool
    blind: bool
    """Enabled, `mcp` importable, and yet something is not seen."""
    activations: tuple[Activation, ...]
    hooks: Mapping[str, bool]
    """Whether each is in place; if the plugin is not enabled, whether it would be."""
    settings: tuple[Setting, ...]
    metrics: tuple[str, ...]
    """Where the numbers go."""
    problems: tuple[str, ...]


def diagnose(environ: Mapping[str, str]) -> Diagnosis:
    """Looks at this environment, and enables the plugin in a process of its own to see what comes of it.

    `environ` is what an application started here would get.
    """
    settings, problems = Settings.from_environ(environ, default_metrics=default_metrics(Way.ENVIRONMENT))
    found = _probe(environ, problems)
    starts = Way.ENVIRONMENT.value in found["ways"]
    by_environment = settings.enabled is True and starts
    by_entry_point = settings.enabled is not False and is_auto_instrumented()
    enabled = settings.enabled is True or by_entry_point
    importable = found["installed"] and not found["import_errors"]
    sees_all = all(found["hooks"].values()) and bool(found["hooks"])
    problems += _problems(found, starts=starts)
    return Diagnosis(
        version=installed_version(),
        python=sys.version.split()[0],
        executable=sys.executable,
        mcp_version=installed_version("mcp"),
        mcp_importable=importable,
        enabled=enabled,
        blind=enabled and found["installed"] and not (sees_all and (by_environment or by_entry_point)),
        activations=(
            Activation(Way.ENVIRONMENT.value, by_environment, _switch(settings, environ, found, starts=starts)),
            Activation(Way.ENTRY_POINT.value, by_entry_point, _entry_point(by_entry_point=by_entry_point)),
            Activation(Way.INSTRUMENTOR.value, None, "if the application's code calls it"),
            Activation(Way.FUNCTION.value, None, "if the application's code calls it"),
        ),
        hooks=found["hooks"],
        settings=_settings(settings),
        metrics=destinations(settings, environ),
        problems=tuple(problems),
    )


def _probe(environ: Mapping[str, str], problems: list[str]) -> Findings:
    command = [sys.executable, "-m", "otel_mcp_resume.cli.probe"]
    why = ""
    try:
        run = subprocess.run(  # noqa: S603 - ourselves
            command, env={**environ, **_QUIET}, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
        why = run.stderr.strip().rpartition("\n")[2]
        found: Findings = json.loads(run.stdout.strip().rpartition("\n")[2])
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        problems.append(f"the check could not be made: {why or repr(error)}")
        return {"installed": bool(installed_version("mcp")), "import_errors": {}, "ways": [], "hooks": {}}
    return found


def _problems(found: Findings, *, starts: bool) -> list[str]:
    if not found["installed"]:
        return ["mcp is not installed in this environment: there is nothing to watch"]
    problems = [f"cannot import {module}: {why}" for module, why in found["import_errors"].items()]
    problems += [f"the hook {hook} finds nothing to hook into" for hook, there in found["hooks"].items() if not there]
    if found["hooks"] and not starts:
        problems.append(f"the startup file does not work: {VARIABLE}=1 would enable nothing in this environment")
    return problems


def _switch(settings: Settings, environ: Mapping[str, str], found: Findings, *, starts: bool) -> str:
    if settings.enabled is False:
        return f"{VARIABLE} keeps the plugin off"
    if settings.enabled is None:
        return (
            f"{VARIABLE} is neither 1 nor 0, so it counts as not set"
            if environ.get(VARIABLE)
            else f"{VARIABLE} is not set"
        )
    if not found["installed"]:  # nothing is activated before `mcp` is imported
        return f"{VARIABLE} is set, and waits for mcp"
    return f"{VARIABLE} is set" if starts else f"{VARIABLE} is set, but the startup file does not work"


def _entry_point(*, by_entry_point: bool) -> str:
    registered = entry_points(group="opentelemetry_instrumentor", name=ENTRY_POINT)
    state = "registered" if registered else "missing"
    return f"{'in' if by_entry_point else 'not in'} this process; entry point {ENTRY_POINT} is {state}"


def _settings(settings: Settings) -> tuple[Setting, ...]:
    shown = {
        "enabled": {True: "yes", False: "no", None: "unset"}[settings.enabled],
        "metrics": ",".join(sorted(settings.metrics)) or "none",
        "prometheus_port": "none" if settings.prometheus_port is None else str(settings.prometheus_port),
        "proof_timeout": f"{settings.proof_timeout:g} s",
        "ids_key": "random" if settings.sources["ids_key"] == "default" else "given",  # a secret: never shown
    }
    return tuple(
        Setting(name, shown.get(name, str(getattr(settings, name))), source)
        for name, source in settings.sources.items()
    )

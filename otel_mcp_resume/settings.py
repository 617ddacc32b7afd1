"""Environment variables into one frozen `Settings`, with a word on where each value came from.

A bad value is never an error: the default takes its place and a warning says so. A variable that is set
to nothing counts as unset, as OpenTelemetry's environment variable specification demands.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["IDS_HASH", "IDS_NONE", "IDS_RAW", "METRICS_OTEL", "METRICS_PROMETHEUS", "Settings"]

T = TypeVar("T")

METRICS_PROMETHEUS = "prometheus"
METRICS_OTEL = "otel"
IDS_RAW = "raw"
IDS_HASH = "hash"
IDS_NONE = "none"

_NONE = "none"
_METRICS_BY_DEFAULT = frozenset({METRICS_PROMETHEUS})
_SWITCH = {"1": True, "true": True, "0": False, "false": False}
_LONGEST_TIMEOUT = 86_400.0
"""Seconds. Waiting longer than a day for evidence is a mistake, and far larger numbers overflow a lock's timeout."""
_SHOWN = 80
"""Characters of a bad value that a warning repeats."""
_LAST_PORT = 65_535
_NUMBER = re.compile(r"[0-9]{1,15}")


class _BadValueError(Exception):
    """A value that cannot be used. Its text says what would have been right."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment asks for. Build it with `from_environ`; the defaults are those of an empty environment."""

    enabled: bool | None = None
    """True and False as `OTEL_MCP_RESUME` says, None if it says nothing. False wins over every other activation."""
    metrics: frozenset[str] = _METRICS_BY_DEFAULT
    """`METRICS_PROMETHEUS`, `METRICS_OTEL`, both, or empty for none."""
    prometheus_host: str = "localhost"
    prometheus_port: int | None = 9464
    """0 picks a free one, None serves none."""
    proof_timeout: float = 20.0
    """Seconds without evidence until an open attempt is unproven."""
    ids: str = IDS_RAW
    """How session and event ids appear in spans and logs: `IDS_RAW`, `IDS_HASH` or `IDS_NONE`."""
    ids_key: bytes = field(default_factory=lambda: os.urandom(32), repr=False)
    """The key of the digests, random for each process unless given. Never shown."""
    max_streams: int = 20_000
    max_events: int = 200_000
    sources: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    """For each of the fields above: `default`, `activation`, or `environment NAME`."""

    @classmethod
    def from_environ(
        cls, environ: Mapping[str, str], *, default_metrics: frozenset[str] = _METRICS_BY_DEFAULT
    ) -> tuple[Settings, list[str]]:
        """The settings of `environ`, and one warning for each variable that could not be used.

        `default_metrics` is what the way of activation prefers where `OTEL_MCP_RESUME_METRICS` says nothing.
        """
        read = _Reader(environ)
        default = cls(metrics=default_metrics)
        settings = cls(
            enabled=read("enabled", "OTEL_MCP_RESUME", _switch, default.enabled),
            metrics=read.several("metrics", "OTEL_MCP_RESUME_METRICS", default_metrics),
            prometheus_host=read("prometheus_host", "OTEL_EXPORTER_PROMETHEUS_HOST", _host, default.prometheus_host),
            prometheus_port=read("prometheus_port", "OTEL_EXPORTER_PROMETHEUS_PORT", _port, default.prometheus_port),
            proof_timeout=read("proof_timeout", "OTEL_MCP_RESUME_PROOF_TIMEOUT", _timeout, default.proof_timeout),
            ids=read("ids", "OTEL_MCP_RESUME_IDS", _ids, default.ids),
            ids_key=read("ids_key", "OTEL_MCP_RESUME_IDS_KEY", _key, default.ids_key),
            max_streams=read("max_streams", "OTEL_MCP_RESUME_MAX_STREAMS", _limit, default.max_streams),
            max_events=read("max_events", "OTEL_MCP_RESUME_MAX_EVENTS", _limit, default.max_events),
            sources=read.sources,
        )
        if read.sources["metrics"] == "default" and default_metrics != _METRICS_BY_DEFAULT:
            read.sources["metrics"] = "activation"
        return settings, read.warnings


class _Reader:
    """Reads one variable after the other and remembers sources and warnings."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.sources: dict[str, str] = {}
        self.warnings: list[str] = []

    def __call__(self, setting: str, variable: str, parse: Callable[[str], T], default: T) -> T:
        raw = self._environ.get(variable, "")
        text = raw.strip()
        self.sources[setting] = "default"
        if not text:
            return default
        try:
            value = parse(text)
        except _BadValueError as bad:
            self.warn(variable, raw, str(bad), f"using {default!r}" if default is not None else "ignoring it")
            return default
        self.sources[setting] = f"environment {variable}"
        return value

    def several(self, setting: str, variable: str, default: frozenset[str]) -> frozenset[str]:
        """A comma list of ways out. A bad item costs that item, not the others."""
        raw = self._environ.get(variable, "")
        items = [item.strip().lower() for item in raw.split(",") if item.strip()]
        self.sources[setting] = "default"
        if not items:
            return default
        known = frozenset(items) & {METRICS_PROMETHEUS, METRICS_OTEL}
        if set(items) == {_NONE} or known == frozenset(items):
            self.sources[setting] = f"environment {variable}"
            return known
        used = known or default
        shown = ",".join(sorted(used)) or _NONE
        self.warn(variable, raw, "expected a comma list of prometheus and otel, or none alone", f"using {shown!r}")
        if known:
            self.sources[setting] = f"environment {variable}"
        return used

    def warn(self, variable: str, raw: str, expected: str, instead: str) -> None:
        """`raw` is shown as a literal, cut, so that it cannot break the line that it is logged on."""
        shown = repr(raw if len(raw) <= _SHOWN else raw[:_SHOWN] + "...")
        self.warnings.append(f"{variable}={shown}: {expected}; {instead}")


def _switch(text: str) -> bool | None:
    try:
        return _SWITCH[text.lower()]
    except KeyError:
        raise _BadValueError("expected 1, true, 0 or false, so this turns nothing on or off") from None


def _host(text: str) -> str:
    name = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if not name or not name.isprintable() or any(sign in name for sign in " /?#@[]"):
        raise _BadValueError("expected a host name or an address")
    return name


def _port(text: str) -> int | None:
    if text.lower() == _NONE:
        return None
    if not _NUMBER.fullmatch(text) or int(text) > _LAST_PORT:
        raise _BadValueError(f"expected a port from 0 to {_LAST_PORT}, or none")
    return int(text)


def _timeout(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _LONGEST_TIMEOUT:  # false for nan, too
        raise _BadValueError(f"expected seconds, more than 0 and at most {_LONGEST_TIMEOUT:.0f}")
    return seconds


def _ids(text: str) -> str:
    if text.lower() not in (IDS_RAW, IDS_HASH, IDS_NONE):
        raise _BadValueError(f"expected {IDS_RAW}, {IDS_HASH} or {IDS_NONE}")
    return text.lower()


def _key(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _limit(text: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) < 1:
        raise _BadValueError("expected a whole number of 1 or more")
    return int(text)

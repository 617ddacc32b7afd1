"""Whether both sides of a case, and the SDK's log, see the same with the plugin and without."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .nursery import Nursery
from .play import Setup, Verdict, recorded
from .relay import Relay, normalised

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from .cases import Case

__all__ = ["Nurseries", "compare"]

TRIES = 4
"""Plays of each kind. Who comes first among connections beside each other is chance, without the plugin as well."""


_OUR_FRAMES = re.compile(
    r'^  [ |+]*File "[^"]*/(?:otel_mcp_resume|wrapt)/.*\n(?: +.*\n(?<!  File ))*?(?=^  [ |+]*File|^\S|\Z)', re.MULTILINE
)
"""What a traceback that the SDK logs says of us: we are between it and the HTTP library, and hide nothing of that."""


@dataclass
class Recording:
    """What was to be seen of one play."""

    wire: Counter[str]
    log: Counter[str]
    size: int
    is_cut: bool
    """Whether it never came to an end by itself."""

    def equals(self, other: Recording) -> bool:
        if self.is_cut and other.is_cut:  # both were stopped somewhere: the one that was stopped first is a part
            return _is_part(self.wire, other.wire) or _is_part(other.wire, self.wire)
        return self.wire == other.wire and self.log == other.log


def _is_part(one: Counter[str], other: Counter[str]) -> bool:
    """But for what was under way at the end."""
    return (one - other).total() <= 2


@dataclass
class Nurseries:
    """One without the plugin and one with it."""

    plain: Nursery
    watched: Nursery

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, python: str) -> AsyncGenerator[Nurseries, None]:
        async with Nursery.started(python, plugin=False) as plain, Nursery.started(python, plugin=True) as watched:
            yield cls(plain, watched)


async def compare(case: Case, setup: Setup, nurseries: Nurseries) -> Verdict:
    """`ok` if a play with the plugin is the same, to the byte, as one without. The detail says how much it was."""
    plain: list[Recording] = []
    watched: list[Recording] = []
    for _ in range(TRIES):
        for kind, nursery in ((plain, nurseries.plain), (watched, nurseries.watched)):
            recording, verdict = await _record(case, replace(setup, plain=True, nursery=nursery))
            if recording is None:
                return verdict
            kind.append(recording)
        if any(one.equals(other) for one in plain for other in watched):
            same = watched[-1]
            return Verdict(case.name, "ok", f"{same.size} bytes, {same.log.total()} log records, {len(plain)} tries")
    return Verdict(case.name, "FAIL", "differs", wire=_differences(plain, watched))


async def _record(case: Case, setup: Setup) -> tuple[Recording | None, Verdict]:
    relay = Relay()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        verdict = await recorded(case, replace(setup, log=str(log)), relay)
        if verdict.status == "skip":
            return None, verdict
        text = log.read_bytes() if log.exists() else b""
    text = b"\n".join(line for line in text.splitlines() if b" otel_mcp_resume" not in line)
    lines = Counter(_OUR_FRAMES.sub("", normalised(text).decode("utf-8", "replace")).splitlines())
    size = sum(len(passed.sent) + len(passed.received) for passed in relay.connections)
    return Recording(relay.passed, lines, size, is_cut=not relay.was_quiet), verdict


def _differences(plain: list[Recording], watched: list[Recording]) -> list[str]:
    pairs = [(f"{name} without", one - other) for name, one, other in _parts(plain[-1], watched[-1])]
    pairs += [(f"{name} with", other - one) for name, one, other in _parts(plain[-1], watched[-1])]
    return [f"{label}: {text}" for label, texts in pairs for text in texts]


def _parts(one: Recording, other: Recording) -> list[tuple[str, Counter[str], Counter[str]]]:
    return [("wire", one.wire, other.wire), ("log", one.log, other.log)]

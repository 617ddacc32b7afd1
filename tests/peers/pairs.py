"""Which client meets which server, and what has to be said about it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from tests.peers.scenes import SCENES
from tests.peers.stage import OURS, Cast, Report, perform
from tests.wire.driven.steps import sdk_is_modern

__all__ = ["Meeting", "meetings"]

PAIRS = (
    ("python", "sdk1"),
    ("python", "sdk2"),
    ("sdk1", "python"),
    ("sdk2", "python"),
    ("fastmcp", "python"),
    ("python", "fastmcp"),
    ("python-2026", "sdk2-2026"),
    ("sdk2-2026", "python-2026"),
)
EXPECTED: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("expected.yaml").read_text())


@dataclass(frozen=True)
class Meeting:
    """One scene between two peers."""

    client: str
    server: str
    scene: str

    def __str__(self) -> str:
        return f"{self.client}>{self.server}-{self.scene}"

    @property
    def runs_node(self) -> bool:
        return any(whose.startswith("sdk") for whose in (self.client, self.server))

    def expected(self, side: str) -> Counter[str]:
        """Empty for a side that nobody watches."""
        whose = self.client if side == "client" else self.server
        if whose not in OURS:
            return Counter()
        by_pair = EXPECTED[self.scene]
        return Counter(by_pair.get(f"{self.client}>{self.server}", by_pair["*"]).get(side, {}))

    def play(self, home: Path | None) -> Report:
        """`home` is where the packages of Node are."""
        scene = SCENES[self.scene]
        verdicts = sum(
            count
            for side in ("client", "server")
            for what, count in self.expected(side).items()
            if what.partition(" ")[0] not in ("violation", "undelivered")
        )
        cast = Cast(self.server, self.client, scene.store, scene.proof_timeout, verdicts, home)
        return asyncio.run(perform(cast, scene.play))


def meetings() -> Iterator[Meeting]:
    """All that can take place with what is installed."""
    for client, server in PAIRS:
        if "fastmcp" in (client, server) and find_spec("fastmcp") is None:
            continue  # version 4 needs mcp 2.x
        if "python-2026" in (client, server) and not sdk_is_modern():
            continue
        for name, scene in SCENES.items():
            if server in scene.servers:
                yield Meeting(client, server, name)

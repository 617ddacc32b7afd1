"""What came of a play, against what had to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from otel_mcp_resume.cli.demo.findings import UNDELIVERED, Finding
from otel_mcp_resume.cli.demo.scenes import Scene, Wanted

__all__ = ["Result"]


@dataclass
class Result:
    """What the application saw, and what the plugin reported meanwhile."""

    scene: Scene
    saw: str = ""
    alarms: list[str] = field(default_factory=list[str])
    """What the application or its operator would have noticed."""
    figures: dict[str, int] = field(default_factory=dict[str, int])
    counts: Counter[Finding] = field(default_factory=Counter[Finding])
    trouble: str = ""
    """Why the play did not come to its end."""

    @property
    def given(self) -> list[Finding]:
        """What fulfils the scene's wishes, in their order."""
        return [found for wanted in self.scene.wanted if (found := self._find(wanted))]

    @property
    def as_wanted(self) -> bool:
        """Whether the scene gave what it must, and nothing else where that is all there may be."""
        wanted = self.given
        sound = not self.scene.alone or all(finding.fine or finding in wanted for finding in self.counts)
        return not self.trouble and sound and len(wanted) == len(self.scene.wanted)

    @property
    def noticed(self) -> str:
        """What an operator would have learned without the plugin."""
        if not self.saw:
            return "not played to its end"
        more = f" and {len(self.alarms) - 1} more" if len(self.alarms) > 1 else ""
        return f"{self.alarms[0]}{more} ({self.saw})" if self.alarms else f"nothing ({self.saw})"

    @property
    def verdict(self) -> str:
        """What the plugin says: what was wanted of it, or both sides if that differs."""
        if self.as_wanted:
            return "; ".join(map(self._show, self.given))
        got = self.trouble or "; ".join(map(self._show, sorted(self.counts))) or "nothing"
        return f"wanted {'; '.join(map(str, self.scene.wanted))}, got {got}"

    def _find(self, wanted: Wanted) -> Finding | None:
        for finding, count in self.counts.items():
            same = (finding.process, finding.terms) == (wanted.process, wanted.terms)
            counted = not wanted.figure or count == self.figures.get(wanted.figure)
            if same and counted and wanted.stream in ("", finding.stream) and wanted.came_from == finding.came_from:
                return finding
        return None

    def _show(self, finding: Finding) -> str:
        return f"{finding} ({self.counts[finding]})" if finding.metric == UNDELIVERED else str(finding)

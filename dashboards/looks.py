"""What a panel says of itself, and how its values look."""

from __future__ import annotations

from dataclasses import dataclass, field

from grafana_foundation_sdk.builders import dashboard

__all__ = ["COLOURS", "SHADES", "About", "Look", "Query"]

COLOURS = {
    "proven": "green",
    "unproven": "yellow",
    "gap": "red",
    "abandoned": "purple",
    "rejected": "blue",
    "failed": "orange",
}
"""An outcome has the same colour wherever it is shown."""

SHADES = {
    f"{side} {kind}": f"{shade}{colour}"
    for side, shade in (("client", "dark-"), ("server", "light-"))
    for kind, colour in (
        ("standalone", "blue"),
        ("request", "orange"),
        ("session", "green"),
        ("listen", "purple"),
        ("streamable_http", "blue"),
        ("sse", "orange"),
        ("stateless", "purple"),
    )
}
"""A kind of stream or generation has one, too. The palette would give two of them nearly the same."""


@dataclass(frozen=True)
class About:
    """What a person who looks at a panel wants to know of it."""

    title: str
    what: str
    """What it shows."""
    red: str
    """What to do when it is red, or looks wrong."""
    runbooks: tuple[str, ...]
    links: tuple[dashboard.DashboardLink, ...] = ()
    """From a value to the spans behind it."""


@dataclass(frozen=True)
class Query:
    """One query of a panel."""

    expr: str
    legend: str = ""
    exemplar: bool = False


@dataclass(frozen=True)
class Look:
    """How the values of a panel look."""

    unit: str = "short"
    decimals: int | None = None
    red: float | None = None
    """From this value on it is red."""
    amber: float | None = None
    below: float | None = None
    """Below this value it is red."""
    mappings: dict[str, tuple[str, str]] = field(default_factory=dict)
    """A word and a colour in place of a value."""

"""What is installed, by its own word."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["OWN", "installed_version"]

OWN = "otel-mcp-resume"


def installed_version(distribution: str = OWN) -> str:
    """The version of a distribution in this environment, or an empty string if there is none."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""

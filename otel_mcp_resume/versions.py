"""What is installed, by its own word."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

__all__ = ["OWN", "has_module", "installed_version"]

OWN = "otel-mcp-resume"


def installed_version(distribution: str = OWN) -> str:
    """The version of a distribution in this environment, or an empty string if there is none."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def has_module(name: str) -> bool:
    """Whether there is a module of that name. Imports the packages it is in: none, where they cannot be imported."""
    try:
        return find_spec(name) is not None
    except ImportError:
        return False

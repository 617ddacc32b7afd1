"""Faults planted in functions of ours, found by looking through the code: whatever is there can be made to raise."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType
from typing import Any

__all__ = ["Fault", "PlantedError", "Point", "planted", "points", "strike"]

PACKAGE = "otel_mcp_resume"


class PlantedError(Exception):
    """What a planted fault raises."""


@dataclass(frozen=True)
class Point:
    """A function of ours."""

    name: str
    function: FunctionType
    owner: type | None

    def __str__(self) -> str:
        return self.name


class Fault:
    """How often a planted fault struck."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.struck = 0


_now: list[Fault] = []


def strike() -> None:
    """What a function does in which a fault is planted."""
    _now[0].struck += 1
    raise _now[0].error


def _planted(*_args: Any, **_kwargs: Any) -> None:
    # Runs as the code of another function, with that function's globals.
    __import__("tests.sdk.planting", fromlist=["strike"]).strike()


def points(*modules: str) -> list[Point]:
    """All functions and methods that are defined in these modules of the package, however private."""
    return [point for module in modules for point in _points_of(f"{PACKAGE}.{module}", module)]


def _points_of(module: str, short: str) -> Iterator[Point]:
    for name, value in vars(import_module(module)).items():
        if getattr(value, "__module__", None) != module:
            continue
        if inspect.isfunction(value):
            yield Point(f"{short}.{name}", value, None)
        elif inspect.isclass(value):
            for method, member in vars(value).items():
                function = getattr(member, "__func__", getattr(member, "fget", member))
                if inspect.isfunction(function) and function.__qualname__.startswith(value.__qualname__):
                    yield Point(f"{short}.{name}.{method}", function, value)


@contextlib.contextmanager
def planted(point: Point, error: BaseException | None = None) -> Iterator[Fault]:
    """Makes the function raise, wherever it was imported to and whoever holds it."""
    fault = Fault(error if error is not None else PlantedError(point.name))
    _now.append(fault)
    code = point.function.__code__
    before = vars(point.owner).get(point.function.__name__) if point.owner else None
    try:
        if not code.co_freevars:
            point.function.__code__ = _planted.__code__
        else:  # what a dataclass generates is a closure
            assert point.owner is not None
            setattr(point.owner, point.function.__name__, _planted)
        yield fault
    finally:
        if not code.co_freevars:
            point.function.__code__ = code
        elif point.owner is not None:
            setattr(point.owner, point.function.__name__, before)
        _now.remove(fault)

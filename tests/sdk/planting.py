"""Faults planted in functions of ours, found by looking through the code: whatever is there can be made to raise."""

from __future__ import annotations

import contextlib
import inspect
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from types import FrameType, FunctionType
from typing import Any

__all__ = ["Fault", "PlantedError", "Point", "called", "planted", "points", "strike"]

PACKAGE = "otel_mcp_resume"


class PlantedError(Exception):
    """What a planted fault raises."""


@dataclass(frozen=True)
class Point:
    """A function of ours."""

    name: str
    function: FunctionType

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
    source = import_module(module)
    for name, value in vars(source).items():
        members = vars(value).items() if inspect.isclass(value) else [("", value)]
        for member, descriptor in members:
            function = getattr(descriptor, "__func__", getattr(descriptor, "fget", descriptor))
            # What a dataclass generates comes from no file, and what was imported from another one.
            if inspect.isfunction(function) and function.__code__.co_filename == source.__file__:
                yield Point(f"{short}.{name}.{member}".rstrip("."), function)


@contextlib.contextmanager
def planted(point: Point, error: BaseException | None = None) -> Iterator[Fault]:
    """Makes the function raise, wherever it was imported to and whoever holds it."""
    fault = Fault(error if error is not None else PlantedError(point.name))
    code = point.function.__code__
    _now.append(fault)
    point.function.__code__ = _planted.__code__
    try:
        yield fault
    finally:
        point.function.__code__ = code
        _now.remove(fault)


@contextlib.contextmanager
def called(among: Iterable[Point]) -> Iterator[set[str]]:
    """The points that were passed, in any thread that starts meanwhile."""
    names = {point.function.__code__: point.name for point in among}
    passed: set[str] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in names:
            passed.add(names[frame.f_code])

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield passed
    finally:
        sys.setprofile(None)
        threading.setprofile(None)

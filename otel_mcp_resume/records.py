"""Frozen values that are made for every connection and every verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from typing_extensions import dataclass_transform

__all__ = ["record"]

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """A dataclass with slots that type checkers take for a frozen one.

    One that is really frozen sets its fields through `object.__setattr__`, which makes it three times as dear to make.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)

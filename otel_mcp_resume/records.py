"""Frozen values that are made for every connection and every verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from typing_extensions import dataclass_transform

__all__ = ["record"]

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """A dataclass with slots that type checkers take for a frozen one.

    One that is really frozen sets its fields through `object.__setattr__`, which makes it three times as dear to make.
    What is seldom called is written once below: `dataclass` compiles it anew for each class, at every start.
    """
    made: Any = dataclass(slots=True, eq=False, repr=False)(cls)
    made.__eq__, made.__hash__, made.__repr__ = _is_equal, _hash, _shown
    result: type[T] = made
    return result


def _values(self: Any) -> dict[str, Any]:
    names: dict[str, object] = self.__dataclass_fields__
    return {name: getattr(self, name) for name in names}


def _is_equal(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if type(self) is type(other) else NotImplemented


def _hash(self: Any) -> int:
    return hash(tuple(_values(self).values()))


def _shown(self: Any) -> str:
    values = _values(self).items()
    return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in values)})"

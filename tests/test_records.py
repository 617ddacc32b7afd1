from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from otel_mcp_resume.records import record


@record
class Point:
    x: int
    y: str | None = None


@record
class Other:
    x: int
    y: str | None = None


@dataclass(frozen=True)
class Frozen:
    x: int
    y: str | None = None


def test_values_are_equal_if_their_fields_are() -> None:
    assert Point(1, "a") == Point(1, "a")
    assert Point(1, "a") != Point(1, "b")
    assert Point(1) != Other(1)  # type: ignore[comparison-overlap] # that they are told apart is the point
    assert len({Point(1, "a"), Point(1, "a"), Point(2, "a")}) == 2


def test_it_shows_as_a_dataclass_does() -> None:
    assert repr(Point(1, "it's")) == repr(Frozen(1, "it's")).replace("Frozen", "Point")


def test_it_is_replaced_like_a_dataclass_and_has_no_room_for_more() -> None:
    assert replace(Point(1, "a"), x=2) == Point(2, "a")
    with pytest.raises(AttributeError):
        Point(1).z = 3  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]

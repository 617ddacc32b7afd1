"""Which event ids can be compared, and how.

Event ids are opaque (MCP 2025-11-25, "Resumability and Redelivery"). Two are compared only if both parse to
the same shape, so that an order must have been meant:

- an integer of any size: `42`, `-7`, `007`;
- one integer behind the same prefix: `e-7`, `_GET_stream_13`, `7_12` (Swift SDK), `<random>_4` (Go SDK);
- one integer before the same suffix: `12@tools`, and `3/0`, which the Rust SDK means as index/request.

An id has one shape at most, so that comparability is an equivalence. Never ordered are UUIDs (Python, Java and
Kotlin SDKs), a timestamp with a random tail (`<uuid>_<ms>_<random>`, TypeScript SDK), and mixtures of letters
and digits, as random or encrypted parts are.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["EventNumber", "Shape", "compare_event_ids", "parse_event_id"]

DIGITS = "0123456789"
LETTERS_AND_DIGITS = f"{DIGITS}ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

_INTEGER = re.compile(r"-?[0-9]+")
_INDEX_OF_REQUEST = re.compile(r"(-?[0-9]+)(/[0-9]+)")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_TIMESTAMP = re.compile(r"[0-9]{10,}")
"""Seconds since 1970 have ten digits today, milliseconds thirteen. What stands beside one is taken as random."""
_WORD = re.compile(r"[A-Za-z]*")


class Shape(NamedTuple):
    """What two ids must share to be comparable."""

    prefix: str
    suffix: str


class EventNumber(NamedTuple):
    """An id that counts: its shape, and its number in an order that needs no big integers.

    Arithmetic on the number would cost the square of its length, and Python refuses to parse long ones.
    """

    shape: Shape
    negative: bool
    digits: str
    """Without leading zeros; empty for zero."""


def compare_event_ids(first: str, second: str) -> int | None:
    """-1, 0 or 1 as `first` is lower than, equal to or higher than `second`; None if they can't be compared."""
    one, other = parse_event_id(first), parse_event_id(second)
    if one is None or other is None or one.shape != other.shape:
        return None
    if one.negative != other.negative:
        return -1 if one.negative else 1
    one_key, other_key = (len(one.digits), one.digits), (len(other.digits), other.digits)
    order = (one_key > other_key) - (one_key < other_key)
    return -order if one.negative else order


def parse_event_id(event_id: str) -> EventNumber | None:
    """The number in an id and what is around it; None if the id is opaque."""
    if _INTEGER.fullmatch(event_id):
        return _number("", event_id, "")
    if match := _INDEX_OF_REQUEST.fullmatch(event_id):
        return _number("", match[1], match[2])
    return _behind_prefix(event_id) if event_id.endswith(tuple(DIGITS)) else _before_suffix(event_id)


def _number(prefix: str, integer: str, suffix: str) -> EventNumber:
    digits = integer.lstrip("-").lstrip("0")
    return EventNumber(Shape(prefix, suffix), integer.startswith("-") and bool(digits), digits)


def _behind_prefix(event_id: str) -> EventNumber | None:
    prefix = event_id.rstrip(DIGITS)
    integer = event_id[len(prefix) :]
    run = _trailing_run(prefix)
    if not _WORD.fullmatch(run) or _is_random(event_id, len(prefix), len(event_id), beside=prefix):
        return None
    if prefix.endswith("-"):
        before = prefix[-2:-1]
        if before == "-":
            return None  # a sign or a separator? Nobody can tell
        if not before.isalnum():
            return _number(prefix[:-1], f"-{integer}", "")
    return _number(prefix, integer, "")


def _before_suffix(event_id: str) -> EventNumber | None:
    suffix = event_id.lstrip("-").lstrip(DIGITS)
    integer = event_id[: len(event_id) - len(suffix)]
    if not _INTEGER.fullmatch(integer):
        return None
    run = suffix[: len(suffix) - len(suffix.lstrip(LETTERS_AND_DIGITS))]
    if not _WORD.fullmatch(run) or _is_random(event_id, 0, len(integer), beside=suffix):
        return None
    return _number("", integer, suffix)


def _trailing_run(prefix: str) -> str:
    """The letters and digits that stand directly before the integer."""
    return prefix[len(prefix.rstrip(LETTERS_AND_DIGITS)) :]


def _is_random(event_id: str, start: int, end: int, *, beside: str) -> bool:
    """Whether the integer at `start:end` is a part of a UUID, or stands beside a timestamp."""
    if any(match.start() < end and start < match.end() for match in _UUID.finditer(event_id)):
        return True
    return _TIMESTAMP.search(_UUID.sub("", beside)) is not None

"""The event ids that the log issues: `<tag>:<stream>:<number>`, visible ASCII, 56 characters at most.

The tag is random and belongs to one registration of one session, so an id is valid in no other session, in no other
process, and not after a restart. `<stream>` counts the streams of the session, `<number>` the events of the stream,
so ids are comparable within a stream (one integer behind the same prefix) and never between two.

An id without the tag would be valid in every session: `_GET_stream` and the request ids that stores commonly use as
stream names, and plain counters, are the same in all of them.
"""

from __future__ import annotations

import re
import secrets
import string
from typing import NamedTuple

__all__ = ["EventToken", "new_tag", "parse_token", "token_prefix"]

TAG_LENGTH = 16
"""Letters, which makes 75 bits. No digits: a run of them looks like a timestamp, and such ids are opaque."""

_TOKEN = re.compile(r"([a-z]{16}):([1-9][0-9]{0,18}):(0|[1-9][0-9]{0,18})")


class EventToken(NamedTuple):
    """What an event id of the log says."""

    tag: str
    ordinal: int
    """Which stream of the session, from 1."""
    number: int
    """Which event of the stream, from 1; 0 is the place before the first."""


def new_tag() -> str:
    """The one thing in `rules` that is left to chance: whoever could guess it could name another session's events."""
    return "".join(secrets.choice(string.ascii_lowercase) for _ in range(TAG_LENGTH))


def token_prefix(tag: str, ordinal: int) -> str:
    """What all event ids of one stream have in common."""
    return f"{tag}:{ordinal}:"


def parse_token(text: str) -> EventToken | None:
    """None if the log cannot have issued this. There is one way to write an id: no leading zeros, no white space."""
    match = _TOKEN.fullmatch(text)
    return match and EventToken(match[1], int(match[2]), int(match[3]))

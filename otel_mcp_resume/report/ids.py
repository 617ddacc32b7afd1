"""How session ids and event ids appear in spans and records: as they are, as digests, or not at all.

They come from a peer. They can be long, hold control characters, or be somebody's secret.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from otel_mcp_resume.settings import IDS_HASH, IDS_RAW

if TYPE_CHECKING:
    from otel_mcp_resume.settings import Settings

__all__ = ["LONGEST", "Ids", "printable"]

LONGEST = 256
"""Characters of a text from a peer that are shown."""
_DIGEST_BYTES = 8
_LONGEST_KEY = 64
"""Bytes, a limit of BLAKE2b (RFC 7693)."""


def printable(text: str) -> str:
    """`text` on one line of visible characters, at most `LONGEST` of them, and an ellipsis if there were more."""
    if len(text) <= LONGEST and text.isprintable():
        return text
    shown: list[str] = []
    room = LONGEST
    for character in text[:LONGEST]:
        piece = character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        room -= len(piece)
        if room < 0:
            break
        shown.append(piece)
    cut = len(shown) < len(text)
    return "".join(shown) + ("…" if cut else "")


class Ids:
    """Shows ids as `OTEL_MCP_RESUME_IDS` wants them shown."""

    __slots__ = ("_key", "_mode")

    def __init__(self, settings: Settings) -> None:
        self._mode = settings.ids
        key = settings.ids_key
        self._key = key if len(key) <= _LONGEST_KEY else hashlib.blake2b(key).digest()

    def __call__(self, identifier: str | None) -> str | None:
        """What is shown of `identifier`: None if nothing is.

        A digest has 16 hexadecimal digits, and is the same in every process that has the same key.
        """
        if identifier is None:
            return None
        if self._mode == IDS_RAW:
            return printable(identifier)
        if self._mode == IDS_HASH:
            text = identifier.encode("utf-8", "surrogatepass")
            return hashlib.blake2b(text, digest_size=_DIGEST_BYTES, key=self._key).hexdigest()
        return None

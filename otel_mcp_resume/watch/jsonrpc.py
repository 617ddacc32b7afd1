"""The JSON-RPC id of a response as it was written, without parsing what may be a megabyte of result.

Python writes the id first, the TypeScript SDK last; both ends of the text are looked at before anything is parsed.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

__all__ = ["id_text", "response_id"]

_ID = r'("[ !#-\[\]-~]*"|-?[0-9]+|null)'
"""An id that can be written in one way only; one with escapes, or beyond ASCII, is found by parsing."""
_VERSION = r'"jsonrpc"\s*:\s*"2\.0"'
_FRONT = re.compile(rf'\s*\{{\s*(?:{_VERSION}\s*,\s*)?(?:"id"\s*:\s*{_ID}\s*,\s*)?(?:{_VERSION}\s*,\s*)?"(\w+)"\s*:')
_BACK = re.compile(rf'[,{{]\s*"id"\s*:\s*{_ID}\s*(?:,\s*{_VERSION}\s*)?\}}\s*$')
_NO_RESPONSE = ('{"method":', '{"jsonrpc":"2.0","method":')
"""How messages of the Python SDKs begin that are none."""
_BACK_LENGTH = 400
"""Characters at the end in which an id is looked for; a longer id is found by parsing."""


def response_id(data: str) -> str | None:
    """The id of the response in `data` as JSON text (`1`, `"1"`, `null`); None if it is no response."""
    if data.startswith(_NO_RESPONSE):
        return None
    if front := _FRONT.match(data):
        written, first = front[1], front[2]
        if first == "method":
            return None
        if first in ("result", "error"):
            if written is not None:
                return str(written)
            if back := _BACK.search(data, max(0, len(data) - _BACK_LENGTH)):
                return str(back[1])
    return _parsed_id(data)


def _parsed_id(data: str) -> str | None:
    try:
        parsed: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    message = cast("dict[str, Any]", parsed)
    if "method" in message or not ("result" in message or "error" in message):
        return None
    return id_text(message.get("id"))


def id_text(value: Any) -> str:
    """A JSON-RPC id as JSON text."""
    if type(value) is int:  # as all SDKs count
        return str(value)
    return json.dumps(value)

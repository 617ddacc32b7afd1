"""The frames of a scripted event stream, as text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from .ordinary import tool_result

if TYPE_CHECKING:
    from .driven.steps import Json

__all__ = ["Speaker", "frame_text"]


class Speaker(Protocol):
    """What a frame may need from the response that it belongs to."""

    def answer(self) -> Json: ...

    def filled(self, value: Any) -> Any: ...


def frame_text(speaker: Speaker, frame: Json) -> str:
    """One block of the stream, with its blank line."""
    if "comment" in frame:
        return f": {frame['comment']}\n\n"
    fields = {key: frame[key] for key in ("id", "event", "retry") if key in frame}
    if "size" in frame:
        fields["id"] = _padded(str(frame["id"]), frame["size"])
    lines = [f"{key}: {value}" for key, value in fields.items()]
    data = _frame_data(speaker, frame)
    text = "\n".join([*lines, *([] if data is None else [f"data: {data}"]), "", ""])
    return text[: frame.get("cut", len(text))]


def _padded(event_id: str, size: int) -> str:
    """An id of that many characters: the first one is repeated in front."""
    return event_id.rjust(size, event_id[0])


def _frame_data(speaker: Speaker, frame: Json) -> str | None:
    """`data` is sent as it is; `rpc`, `answer`, `note` and `result` become JSON-RPC messages."""
    message: Json
    if "answer" in frame:
        message = speaker.answer()
    elif "rpc" in frame:
        message = frame["rpc"]
    elif "note" in frame:
        message = {"method": "notifications/message", "params": {"level": "info", "data": frame["note"]}}
    elif "result" in frame:
        message = {"id": frame.get("to", "$call"), "result": tool_result(frame["result"])}
    else:
        data: str | None = frame.get("data")
        return data
    return json.dumps(speaker.filled({"jsonrpc": "2.0", **message}))

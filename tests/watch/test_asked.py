"""What is remembered of the requests of an HTTP+SSE session."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_mcp_resume.watch.asked import LARGEST, LIMIT, Asked


def body(method: str, request_id: Any = None, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if request_id is None else {**message, "id": request_id}).encode()


def test_a_call_is_owed_until_it_is_answered_refused_or_cancelled() -> None:
    asked = Asked()
    assert asked.posting(body("tools/call", 1, name="pay", arguments={"order": 7})) == ("pay", {"order": 7})
    asked.posting(body("tools/call", 2, name="two"))
    asked.posting(body("notifications/cancelled", requestId=2))
    asked.posting(body("tools/call", "3", name="three"))
    assert asked.answered('"3"') is False
    asked.posting(body("tools/call", 4, name="four"))
    asked.refused()
    asked.posting(body("ping", 5))
    asked.refused()
    assert asked.left() == [("pay", {"order": 7})]
    assert len(asked) == 0


def test_a_list_is_told_from_a_call() -> None:
    asked = Asked()
    assert asked.posting(body("tools/list", 1)) is None
    assert asked.answered("2") is False
    assert asked.answered("1") is True
    assert asked.answered("1") is False


@pytest.mark.parametrize(
    "text", [b'"tools/call"', b'["tools/call"]', b'{"method": "tools/call"}', b'{"tools/call": 1}']
)
def test_what_is_no_request_is_nothing(text: bytes) -> None:
    asked = Asked()
    assert asked.posting(text) is None
    assert len(asked) == 0


def test_the_oldest_are_forgotten() -> None:
    asked = Asked()
    for number in range(LIMIT + 3):
        asked.posting(body("tools/call", number, name=str(number)))
    assert len(asked) == LIMIT
    assert asked.left()[0] == ("3", None)


@pytest.mark.parametrize(("sent", "answered"), [(1, '"1"'), ("1", "1")])
def test_an_id_and_its_text_are_the_same(sent: Any, answered: str) -> None:
    asked = Asked()
    asked.posting(body("tools/call", sent, name="pay"))
    asked.answered(answered)
    assert asked.left() == []


def test_a_post_that_failed_may_be_answered_all_the_same() -> None:
    asked = Asked()
    asked.posting(body("tools/call", 1, name="pay"))
    asked.posting(body("tools/call", 2, name="refund"))
    assert asked.failed()
    assert not asked.failed(), "it has been told of"
    assert asked.left() == [("pay", None)]
    assert asked.answered("2") is False
    assert asked.answered_after_all("1") is None
    assert asked.answered_after_all("2") == ("refund", None)
    assert asked.answered_after_all("2") is None
    asked.posting(body("tools/call", 3, name="pay"))
    asked.answered("3")
    assert not asked.failed(), "the result was here before"


def test_a_call_that_is_made_again_on_an_open_stream_was_given_up() -> None:
    asked = Asked()
    asked.posting(body("tools/call", 1, name="pay", arguments={"order": 7}))
    asked.posting(body("tools/call", 2, name="pay", arguments={"order": 8}))
    asked.posting(body("tools/call", 3, name="pay", arguments={"order": 7}))
    asked.answered("3")
    assert asked.left() == [("pay", {"order": 8})]


def test_large_arguments_are_not_kept() -> None:
    asked = Asked()
    text = "x" * LARGEST
    assert asked.posting(body("tools/call", 1, name="store", arguments={"text": text})) == ("store", {"text": text})
    assert not asked.failed()
    assert (len(asked), asked.left()) == (0, [])

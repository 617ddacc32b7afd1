from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otel_mcp_resume.watch.sse import MAX_PENDING, Block, SseScanner

HEARTBEAT = Block(None, None, None)


def scan(*pieces: str) -> list[Block]:
    scanner = SseScanner()
    return [block for piece in pieces for block in scanner.feed(piece)]


def by_the_book(text: str) -> list[Block]:
    """WHATWG HTML, "Interpreting an event stream", line by line; blocks without any line are none."""
    text = text.removeprefix("\ufeff")
    lines = re.split("\r\n|\r|\n", text)[:-1]
    blocks: list[Block] = []
    block: list[str] = []
    for line in lines:
        if line:
            block.append(line)
        elif block:
            blocks.append(_fields(block))
            block = []
    return blocks


def _fields(lines: Sequence[str]) -> Block:
    event_id = event = None
    data: list[str] = []
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "id" and "\0" not in value:
            event_id = value
        elif name == "event":
            event = value
    if event_id is None and not data:
        return HEARTBEAT
    return Block(event_id, "\n".join(data) if data else None, event)


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("id: 7\ndata: x\n\n", [Block("7", "x", None)]),
        ("id:7\ndata:x\n\n", [Block("7", "x", None)]),
        ("id:  7\ndata:  x \n\n", [Block(" 7", " x ", None)]),
        ("event: message\ndata: x\n\n", [Block(None, "x", "message")]),
        ("data: a\ndata: b\n\n", [Block(None, "a\nb", None)]),
        ("data\n\n", [Block(None, "", None)]),
        ("id\ndata: x\n\n", [Block("", "x", None)]),
        ("id: 1\nid: 2\ndata: x\n\n", [Block("2", "x", None)]),
        ("id: 7\n\n", [Block("7", None, None)]),
        ("id: 7\ndata: \n\n", [Block("7", "", None)]),
        ("id: a\0b\ndata: x\n\n", [Block(None, "x", None)]),
        ("id: 1\nid: a\0b\ndata: x\n\n", [Block("1", "x", None)]),
        (": ping\n\n", [HEARTBEAT]),
        (":\n\n", [HEARTBEAT]),
        ("retry: 1000\n\n", [HEARTBEAT]),
        ("event: ping\n\n", [HEARTBEAT]),
        (": ping\nid: 7\ndata: x\n\n", [Block("7", "x", None)]),
        ("ID: 7\nDATA: x\n\n", [HEARTBEAT]),
        ("identity: 7\ndatum: x\n\n", [HEARTBEAT]),
        ("id: é\u2028\x0b\x0c\x1c\ndata: x\u2028y\u0085z\n\n", [Block("é\u2028\x0b\x0c\x1c", "x\u2028y\u0085z", None)]),
        ("\ufeffid: 7\ndata: x\n\n", [Block("7", "x", None)]),
        ("data: \ufeffx\n\n\ufeffid: 7\n\n", [Block(None, "\ufeffx", None), HEARTBEAT]),
        ("data: x\n", []),
        ("data: x", []),
        ("", []),
        ("\n\n\n\n", []),
        ("\n\ndata: x\n\n\n\n\ndata: y\n\n\n", [Block(None, "x", None), Block(None, "y", None)]),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_a_block(text: str, blocks: list[Block], newline: str) -> None:
    written = text.replace("\n", newline)
    assert scan(written) == blocks
    assert scan(*written) == blocks
    assert by_the_book(written) == blocks, "the reference of the properties below"


STREAM = (
    '\ufeff: ok\r\n\r\nid: 1\nevent: message\ndata: {"a":1}\n\n\r\nid: 2\rdata: a\rdata: b\r\r: ping\r\n\n'
    "retry: 5\n\r\nid: x\0\ndata: c\u2028d\n\n\n\ndata: e\r\n\r\n"
)


def test_every_split_equals_the_whole() -> None:
    whole = by_the_book(STREAM)
    assert len(whole) == 7
    assert scan(STREAM) == whole
    for first in range(len(STREAM) + 1):
        assert scan(STREAM[:first], STREAM[first:]) == whole, first
        for second in range(first, len(STREAM) + 1):
            assert scan(STREAM[:first], STREAM[first:second], STREAM[second:]) == whole, (first, second)


LINE = st.sampled_from(
    ["data: x", "data:", "data", "id: 7", "id:", ": ping", "event: e", "retry: 9", "", "", "\0", "x"]
)
NEWLINE = st.sampled_from(["\n", "\r\n", "\r"])
TEXT = st.lists(st.tuples(LINE | st.text(max_size=6), NEWLINE).map("".join), max_size=12).map("".join)


@given(TEXT, st.lists(st.integers(0, 200), max_size=8))
@example("data: x\n\n\n\n", [9])
def test_any_split_of_any_stream_is_by_the_book(text: str, cuts: list[int]) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut <= len(text)), len(text)]
    pieces = [text[start:end] for start, end in pairwise(edges)]
    assert scan(*pieces) == by_the_book(text)


def test_an_event_of_ten_megabytes_is_judged_by_its_front_in_bounded_memory() -> None:
    scanner = SseScanner()
    piece = "x" * 65_536
    tracemalloc.start()
    try:
        scanner.feed('id: 9\ndata: {"jsonrpc":"2.0","id":5,"result":"')
        for _ in range(160):
            assert list(scanner.feed(piece)) == []
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    (block,) = scanner.feed('"}\n\n')
    assert held < MAX_PENDING + 200_000
    assert (block.event_id, block.event) == ("9", None)
    assert block.data is not None
    assert block.data.startswith('{"jsonrpc":"2.0","id":5,')
    assert list(scanner.feed("id: 10\ndata: y\n\n")) == [Block("10", "y", None)]


@pytest.mark.parametrize("tail", ["data: x\n", "\ndata: x", "x", "\n: x\nx", "id: 8\n"])
def test_what_is_skipped_of_a_long_event_makes_no_events(tail: str) -> None:
    scanner = SseScanner()
    scanner.feed("id: 9\n")
    for _ in range(5):
        scanner.feed("data: " + "x" * 1_000_000 + "\n")
    scanner.feed("data: x")
    for _ in range(50):
        assert list(scanner.feed(tail)) == []
    blocks = scanner.feed("" if tail.endswith("\n") else "\n") or scanner.feed("\n")
    assert len(blocks) == 1
    assert list(scanner.feed("data: y\n\n")) == [Block(None, "y", None)]


def test_many_short_lines_of_a_long_event_are_bounded_too() -> None:
    scanner = SseScanner()
    lines = "data: x\n" * 100_000
    tracemalloc.start()
    try:
        for _ in range(20):
            scanner.feed(lines)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < MAX_PENDING + 2_000_000


@pytest.mark.timeout(30)
def test_an_event_of_half_a_million_lines_costs_no_more_than_its_length() -> None:
    (block,) = scan("data: x\n" * 500_000 + "\n")
    assert block.data == "\n".join("x" * 500_000)


def test_a_message_in_one_piece_and_in_many_is_the_same_message() -> None:
    message = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "\u2028\r\n"}})
    event = f"id: 3\r\ndata: {message}\r\n\r\n"
    assert scan(event) == scan(*event) == [Block("3", message, None)]

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_mcp_resume.watch.jsonrpc import id_text, response_id

LONG = "x" * 5000


@pytest.mark.parametrize(
    ("data", "written"),
    [
        ('{"jsonrpc":"2.0","id":1,"result":{}}', "1"),
        ('{"jsonrpc":"2.0","id":"1","result":{}}', '"1"'),
        ('{"jsonrpc": "2.0", "id": -7, "error": {"code": 1}}', "-7"),
        ('{"id":1,"jsonrpc":"2.0","result":{}}', "1"),
        ('{"result":{},"jsonrpc":"2.0","id":1}', "1"),
        ('{"jsonrpc":"2.0","result":{"id":9},"id":"x"}', '"x"'),
        ('{"result":{},"id":1,"jsonrpc":"2.0"}', "1"),
        ('{"jsonrpc":"2.0","error":{"id":9},"id":null}', "null"),
        ('{"jsonrpc":"2.0","id":null,"error":{}}', "null"),
        ('{"jsonrpc":"2.0","result":{"a":{"id":9}}}', "null"),
        ('{"jsonrpc":"2.0","result":"{\\"id\\":9}"}', "null"),
        ('{"jsonrpc":"2.0","result":{},"extra":",\\"id\\":9}","id":8}', "8"),
        ('{"extra":0,"jsonrpc":"2.0","id":3,"result":{}}', "3"),
        (f'{{"jsonrpc":"2.0","result":"{LONG}","id":4}}', "4"),
        (f'{{"jsonrpc":"2.0","result":{{}},"id":"{LONG}"}}', f'"{LONG}"'),
        ('\n { "jsonrpc" : "2.0" , "id" : 5 , "result" : { } } \n', "5"),
        ('{"jsonrpc":"2.0","id":' + "9" * 5000 + ',"result":{}}', "9" * 5000),
        ('{"jsonrpc":"2.0","id":"caf\\u00e9","result":{}}', '"caf\\u00e9"'),
        ('{"jsonrpc":"2.0","id":"café","result":{}}', '"caf\\u00e9"'),
        ('{"jsonrpc":"2.0","id":"a\\/b","result":{}}', '"a/b"'),
        ('{"result":{},"id":"a\\/b"}', '"a/b"'),
        ('{"jsonrpc":"2.0","id":true,"result":{}}', "true"),
    ],
)
def test_a_response(data: str, written: str) -> None:
    assert response_id(data) == written


@pytest.mark.parametrize(
    "data",
    [
        '{"jsonrpc":"2.0","method":"ping","id":1}',
        '{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"result":1,"id":2}}',
        '{"jsonrpc":"2.0","method":"notifications/message","params":{"result":{},"id":2}}',
        '{"params":{"result":{},"id":1},"method":"x","id":2}',
        '{"jsonrpc":"2.0","id":1}',
        "",
        "{",
        "}",
        "7",
        "null",
        '"result"',
        '[{"jsonrpc":"2.0","id":1,"result":{}}]',
        '{"jsonrpc":"2.0","id":1,"resul',
        "[" * 100_000,
        '{"a":' * 100_000,
        "\0\ud800",
    ],
)
def test_what_is_no_response(data: str) -> None:
    assert response_id(data) is None


TEXT = st.text(max_size=8) | st.sampled_from(["id", '"id":9}', ',"id":9}', "result", "\\"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
JSON_RPC_ID = st.integers() | TEXT | st.none()


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    """A JSON-RPC message, its members in any order, maybe with some that nobody knows."""
    content = draw(
        st.sampled_from(["result", "error", "method", "params"]).flatmap(lambda name: st.tuples(st.just(name), JSON))
    )
    members: dict[str, Any] = {"jsonrpc": "2.0", content[0]: content[1]}
    if content[0] == "params":
        members["method"] = "notifications/message"
    if draw(st.booleans()) or content[0] in ("result", "error"):
        members["id"] = draw(JSON_RPC_ID)
    members.update(draw(st.dictionaries(st.sampled_from(["extra", "_meta", "Id", "results"]), JSON, max_size=2)))
    return dict(draw(st.permutations(list(members.items()))))


def parsed(data: str) -> str | None:
    message = json.loads(data)
    is_response = "method" not in message and ("result" in message or "error" in message)
    return json.dumps(message.get("id")) if is_response else None


@given(
    message=messages(),
    ascii_only=st.booleans(),
    separators=st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]),
    space=st.sampled_from(["", " ", "\n"]),
)
def test_it_agrees_with_a_parser(
    message: dict[str, Any], separators: tuple[str, str], space: str, *, ascii_only: bool
) -> None:
    data = f"{space}{json.dumps(message, ensure_ascii=ascii_only, separators=separators)}{space}"
    assert response_id(data) == parsed(data)


@given(JSON_RPC_ID)
def test_a_request_and_its_response_have_the_same_text(request_id: str | int | None) -> None:
    data = json.dumps({"jsonrpc": "2.0", "id": request_id, "result": {}}, ensure_ascii=False)
    assert response_id(data) == id_text(request_id)


@given(st.text(max_size=60) | st.text(alphabet='{}[]",:\\ id1result', max_size=60))
def test_no_text_at_all_is_too_much(data: str) -> None:
    found = response_id(data)
    assert found is None or isinstance(found, str)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "data",
    [
        '{"id":"' + "a" * 1_000_000,
        '{"id":"' + "\\" * 1_000_001 + '","result":{}}',
        '{"jsonrpc":"2.0",' + " " * 1_000_000,
        "{" * 1_000_000,
        ',"id":' * 200_000,
        '{"result":"' + ',\\"id\\":1' * 100_000 + '"}',
    ],
    ids=["open string", "backslashes", "spaces", "braces", "ids", "ids in a string"],
)
def test_a_hostile_message_costs_no_more_than_its_length(data: str) -> None:
    for _ in range(5):
        response_id(data)

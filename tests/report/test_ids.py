from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_mcp_resume.report.ids import LONGEST, Ids, printable
from otel_mcp_resume.settings import Settings


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("4821", "4821"),
        ("", ""),
        ("Zürich-7", "Zürich-7"),
        ("a\nb\x00c\x1b[31m", "a\\nb\\x00c\\x1b[31m"),
        ("a\u2028b\u202ec", "a\\u2028b\\u202ec"),
        ("x" * LONGEST, "x" * LONGEST),
        ("x" * (LONGEST + 1), "x" * LONGEST + "…"),
        ("\udcff", "\\udcff"),
    ],
)
def test_a_text_is_shown_on_one_bounded_line(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(max_size=2000))
def test_no_text_breaks_a_line_or_a_limit(text: str) -> None:
    shown = printable(text)
    assert len(shown) <= LONGEST + 1
    assert shown.isprintable()
    shown.encode("utf-8")


def test_raw_is_the_default() -> None:
    ids = Ids(Settings())
    assert ids("4821") == "4821"
    assert ids("a\nb") == "a\\nb"
    assert ids(None) is None


def test_none_leaves_them_out() -> None:
    assert Ids(Settings(ids="none"))("4821") is None


def test_a_digest_is_the_same_wherever_the_key_is() -> None:
    ids = Ids(Settings(ids="hash", ids_key=b"k"))
    digest = ids("4821")
    assert digest is not None
    assert re.fullmatch("[0-9a-f]{16}", digest)
    assert Ids(Settings(ids="hash", ids_key=b"k"))("4821") == digest
    assert ids("4822") != digest
    assert Ids(Settings(ids="hash", ids_key=b"other"))("4821") != digest
    assert Ids(Settings(ids="hash"))("4821") != digest
    assert ids(None) is None


def test_a_digest_is_pinned_since_people_search_for_it() -> None:
    assert Ids(Settings(ids="hash", ids_key=b"k"))("4821") == "9b238fcd46b5ba18"


def test_keys_and_ids_of_any_size_have_a_digest() -> None:
    short = Ids(Settings(ids="hash", ids_key=b"k" * 64))
    long = Ids(Settings(ids="hash", ids_key=b"k" * 65))
    assert short("x" * 65536 + "a") != short("x" * 65536 + "b")
    assert len({short("\udcff"), long("\udcff"), short(""), long("")}) == 4

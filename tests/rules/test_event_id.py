from __future__ import annotations

from decimal import Decimal
from itertools import combinations, permutations
from random import Random

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from otel_mcp_resume.rules.event_id import compare_event_ids, parse_event_id
from tests.rules.emitters import COUNTING, OPAQUE, Emitter

SEEDS = st.integers(0, 2**64)
ANY_INTEGER = st.integers() | st.integers(-(10**40), 10**40)
PIECE = st.sampled_from(
    ["", "-", "_", "/", ":", "@", "é", "٣", "\u2028", "e", "Stream", "1", "42", "0007", "99999999999"]
)
ID = st.lists(PIECE, max_size=5).map("".join) | st.text(alphabet="-_/:aA019", max_size=9)
KIN = st.builds(
    "{}{}{}".format, st.sampled_from(["", "", "e-", "e:"]), st.integers(-3, 12), st.sampled_from(["", "", "/0"])
)
"""Ids of which some share a shape."""
UUID = "f948030c-8159-4a3b-9c1d-123456789012"


def text_of(number: int) -> str:
    """`str` refuses more than 4300 digits."""
    return format(Decimal(number), "f")


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


@pytest.mark.parametrize(
    ("first", "second", "order"),
    [
        ("4821", "1", 1),
        ("1", "4821", -1),
        ("7", "7", 0),
        ("7", "007", 0),
        ("0", "-0", 0),
        ("-1", "0", -1),
        ("-2", "-10", 1),
        ("9" * 5000, "1" + "0" * 5000, -1),
        ("-" + "9" * 5000, "-1" + "0" * 5000, 1),
        ("e-7", "e-12", -1),
        ("e:-7", "e:-12", 1),
        ("_GET_stream_13", "_GET_stream_9", 1),
        ("7_12", "7_13", -1),
        ("_0", "_1", -1),
        ("ABCDEFGHIJ_4", "ABCDEFGHIJ_10", -1),
        ("12@tools", "9@tools", 1),
        ("3/0", "12/0", -1),
        ("c2lk:X19nZXRfXw==:7", "c2lk:X19nZXRfXw==:8", -1),
        (f"{UUID}:0000000000000009", f"{UUID}:0000000000000010", -1),
        ("event7", "event10", -1),
    ],
)
def test_ids_of_one_shape_are_ordered(first: str, second: str, order: int) -> None:
    assert compare_event_ids(first, second) == order
    assert compare_event_ids(second, first) == -order


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("", "1"),
        ("1", ""),
        ("", ""),
        ("abc", "abc"),
        ("7", "e-7"),
        ("e-7", "f-7"),
        ("7_12", "8_13"),
        ("3/0", "3/1"),
        ("3/0", "3"),
        ("12@tools", "12@prompts"),
        ("e--7", "e--8"),
        ("+1", "1"),
        ("1 ", "1"),
        ("٣", "3"),
        ("\uff11\uff12", "12"),
        ("1\n", "1"),
        ("a1b2", "a1b3"),
        (UUID, UUID[:-1] + "3"),
        ("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "7ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        (f"{UUID}_{UUID}", f"{UUID}_{UUID[:-1]}3"),
        (f"{UUID}_1795993972753_12345678", f"{UUID}_1795993972753_12345679"),
        ("_GET_stream_1795993972753_1", "_GET_stream_1795993972753_2"),
        (f"{UUID}_1795993972753_0003_999", f"{UUID}_1795993972753_0004_111"),
        (f"7::1795993972753_{UUID}", f"8::1795993972753_{UUID}"),
        (f"{UUID}:000000000000000a", f"{UUID}:000000000000000b"),
        (f"{UUID}:0000000000000009", f"{UUID}:000000000000000a"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW"),
    ],
)
def test_others_are_not(first: str, second: str) -> None:
    assert compare_event_ids(first, second) is None
    assert compare_event_ids(second, first) is None


@given(ANY_INTEGER, ANY_INTEGER)
def test_integers_are_ordered_as_integers(first: int, second: int) -> None:
    assert compare_event_ids(str(first), str(second)) == sign(first - second)


@given(st.integers(-(2**20_000), 2**20_000), st.integers(-(2**20_000), 2**20_000), st.integers(0, 40))
@example(10**4300, 10**4300 - 1, 0)
def test_their_size_does_not_matter(first: int, second: int, zeros: int) -> None:
    assert compare_event_ids(text_of(first), text_of(second)) == sign(first - second)
    padded = f"{'-' if first < 0 else ''}{'0' * zeros}{text_of(abs(first))}"
    assert compare_event_ids(padded, text_of(first)) == 0


@given(st.text(max_size=12), st.integers(0, 10**30), st.integers(0, 10**30))
def test_the_same_prefix_makes_the_order_that_of_the_integers(prefix: str, first: int, second: int) -> None:
    assume(not prefix.endswith(tuple("0123456789-")))
    assert compare_event_ids(f"{prefix}{first}", f"{prefix}{second}") in (sign(first - second), None)


@given(st.text(max_size=12), st.integers(-(10**30), 10**30), st.integers(-(10**30), 10**30))
def test_so_does_the_same_suffix(suffix: str, first: int, second: int) -> None:
    assume(not suffix.startswith(tuple("0123456789")))
    assert compare_event_ids(f"{first}{suffix}", f"{second}{suffix}") in (sign(first - second), None)


@given(ID)
def test_an_id_that_parses_equals_itself(event_id: str) -> None:
    assert compare_event_ids(event_id, event_id) == (None if parse_event_id(event_id) is None else 0)


@given(ID, ID)
def test_comparison_is_antisymmetric(first: str, second: str) -> None:
    order = compare_event_ids(first, second)
    assert compare_event_ids(second, first) == (None if order is None else -order)


@given(st.lists(KIN | ID, min_size=3, max_size=9))
def test_comparability_and_order_are_transitive(ids: list[str]) -> None:
    for first, second, third in permutations(ids, 3):
        orders = {compare_event_ids(first, second), compare_event_ids(second, third)}
        last = compare_event_ids(first, third)
        if None not in orders:
            assert last is not None
        if orders in ({-1}, {-1, 0}, {0}):
            assert last == min(filter(None, orders), default=0)


@given(ID, ID)
def test_comparable_means_that_both_parse_to_one_shape(first: str, second: str) -> None:
    one, other = parse_event_id(first), parse_event_id(second)
    same = one is not None and other is not None and one.shape == other.shape
    assert (compare_event_ids(first, second) is not None) == same


@pytest.mark.parametrize("emitter", OPAQUE, ids=str)
@settings(max_examples=30)
@given(seed=SEEDS)
def test_opaque_ids_are_never_compared(emitter: Emitter, seed: int) -> None:
    random = Random(seed)
    ids = {*emitter.stream(random), *emitter.stream(random)}
    for first, second in combinations(sorted(ids), 2):
        assert compare_event_ids(first, second) is None, (first, second)


@pytest.mark.parametrize("emitter", COUNTING, ids=str)
@settings(max_examples=30)
@given(seed=SEEDS)
def test_counting_ids_are_compared_as_they_were_emitted_or_not_at_all(emitter: Emitter, seed: int) -> None:
    ids = emitter.stream(Random(seed))
    for earlier, later in combinations(ids, 2):
        assert compare_event_ids(earlier, later) in (-1, None), (earlier, later)
        assert compare_event_ids(later, earlier) in (1, None), (later, earlier)


@pytest.mark.parametrize("emitter", COUNTING, ids=str)
def test_a_counter_that_began_anew_is_seen(emitter: Emitter) -> None:
    """A restarted server counts from the start on the same stream: what the whole comparison is for."""
    seen = 0
    for seed in range(50):
        ids = emitter.stream(Random(seed))
        seen += compare_event_ids(ids[0], ids[-1]) == -1
    assert seen >= 20


@pytest.mark.parametrize(
    "event_id",
    ["9" * 65_536, "-" * 65_536, "a" * 65_536 + "1", "1" + "a" * 65_536, "0123456789abcdef-" * 4096, "\0" * 65_536],
    ids=["digits", "dashes", "prefix", "suffix", "almost a UUID", "NUL"],
)
@pytest.mark.timeout(20)
def test_a_long_id_costs_no_more_than_reading_it(event_id: str) -> None:
    for _ in range(20):
        compare_event_ids(event_id, event_id + "1")
        compare_event_ids(event_id, "1" + event_id)

"""Data comes through as it was, everything else as nothing that could pass for it."""

from __future__ import annotations

import json
import time
from collections import Counter, OrderedDict, namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.data import plain
from assay.data.digests import digest

NAN = float("nan")
KEYS = st.integers() | st.text() | st.booleans() | st.tuples(st.integers(), st.text())
LEAVES = KEYS | st.none() | st.floats(allow_nan=False) | st.binary()
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.sets(KEYS, max_size=4)
    ),
    max_leaves=10,
)


def crossed(value: Any) -> Any:
    return plain.decode(json.loads(json.dumps(plain.encode(value))))


def same_types(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return all(map(same_types, a, b))
    return True


@given(VALUES)
def test_values_cross_unchanged(value: Any) -> None:
    assert crossed(value) == value
    assert same_types(crossed(value), value)


@pytest.mark.parametrize(
    "value",
    [
        1 << 20_000,
        -1 << 20_000,
        "\ud800",
        range(3, 9, 2),
        {1: 2}.keys(),
        bytearray(b"x"),
        int,
        float("inf"),
        Decimal("0.10"),
        Fraction(1, 3),
        {(1, (2,)): {3}},
    ],
    ids=lambda value: type(value).__name__,
)
def test_unusual_values_cross(value: Any) -> None:
    assert crossed(value) == value
    assert type(crossed(value)) is type(value)


def test_subclasses_cross_as_their_base() -> None:
    class Liar(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    point = namedtuple("point", "x y")
    assert crossed(Liar(3)) == 3
    assert crossed(Liar(3)) != 4
    assert crossed(point(1, 2)) == (1, 2)
    assert crossed(Counter("aab")) == {"a": 2, "b": 1}
    assert type(crossed(OrderedDict(a=1))) is dict


def test_iterators_cross_as_iterators() -> None:
    assert list(crossed(n * n for n in range(4))) == [0, 1, 4, 9]
    assert list(crossed({1: 2}.values())) == [2]
    assert list(crossed(map(str, [1]))) == ["1"]


class Anything:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__


@pytest.mark.parametrize("value", [Anything(), lambda: 1, open, [Anything]])
def test_the_rest_equals_nothing(value: Any) -> None:
    assert crossed(value) != value
    assert crossed(value) != crossed(value)
    assert plain.has_opaque(plain.encode(value))


def test_nesting_without_end_is_opaque() -> None:
    nested: list[Any] = []
    nested.append(nested)
    assert plain.has_opaque(plain.encode(nested))
    assert not plain.has_opaque(plain.encode({"opaque": "a key, no tag"}))


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"a": 1, "b": 2},
        {"no such tag": 1},
        {"set": [[1]]},
        {"range": "x"},
        {"int": 3},
        {"dict": [1]},
        {"tuple": "ab"},
        {"complex": ["1", "2"]},
        {"Decimal": [0, [1], 5]},
        {"Fraction": 3},
        {"Fraction": "1/0"},
        {"large": [1]},
        {"opaque": {}},
        {"type": []},
        {"bytes": 3},
    ],
)
def test_what_was_never_encoded_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match="not encoded|invalid|unpack"):
        plain.decode(data)


# Small messages, or small for what becomes of them.
BOMBS: dict[str, Any] = {
    "a range that tests may iterate over": {"range": [0, 10**12, 1]},
    "many ranges": [{"range": [0, 10**6 - 1, 1]}] * 3,
    "an integer, compared with a Decimal for minutes": {"int": "f" * 3_000_000},
    "a Decimal that is huge as an integer": {"Decimal": "1E+999999999"},
    "a Decimal that is zero, and huge as a text": {"Decimal": "0E-999999999"},
    "a Decimal of many digits": {"Decimal": "1" * 100_000},
    "a Fraction that is computed as it is read": {"Fraction": "1e3000000"},
    "deques of 624 bytes": [{"deque": []}] * 130_000,
    "texts as lists of characters": {"tuple": "\u03b1" * 3_000_000},
    "a list of lists": [[[]] * 1000] * 1001,
}


@pytest.mark.no_cover
@pytest.mark.parametrize("data", BOMBS.values(), ids=BOMBS.keys())
def test_no_message_becomes_a_huge_value(data: Any) -> None:
    started = time.thread_time()
    with pytest.raises(ValueError, match="not encoded|invalid"):
        plain.decode(data)
    assert time.thread_time() - started < 1


def test_one_long_text_does_not_make_all_of_an_array_long() -> None:
    """All items are as long as the longest: 2 GB for a message of 300 kB."""
    pytest.importorskip("numpy")
    with pytest.raises(ValueError, match="items"):
        plain.decode({"array": ["x" * 30_000] + [""] * 2000})
    assert plain.decode({"array": [["ab", ""]]}).tolist() == [["ab", ""]]


@pytest.mark.parametrize(
    "value", [range(10**7), Decimal("1e10000"), Decimal("1" * 6000), 1 << 600_000], ids=type
)
def test_what_would_be_refused_is_sent_as_opaque(value: Any) -> None:
    """So that an honest program is told of a wrong answer, and not of its end."""
    assert isinstance(crossed(value), plain.Opaque)
    assert crossed([1, value])[0] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [
        [(n, str(n)) for n in range(30_000)],
        [()] * plain.LARGE,
        [complex(n) for n in range(plain.LARGE)],
        {n: [n] for n in range(20_000)},
        [0.5] * plain.MOST_ITEMS,
        range(plain.MOST_ITEMS),
        Decimal("1e5000"),
        Fraction(10**4000, 3),
    ],
    ids=lambda value: (
        f"{type(value).__name__} of {type(next(iter(value), 0)).__name__}"
        if hasattr(value, "__iter__")
        else type(value).__name__
    ),
)
def test_whatever_is_sent_in_full_is_taken(value: Any) -> None:
    assert plain.decode(json.loads(json.dumps(plain.abridged(value)))) == value


def test_a_nan_equals_nothing_even_inside() -> None:
    """The JSON decoder has only one NaN object, so that two lists with it would be equal."""
    for value in ([NAN], (NAN, 1), [[NAN]], {"a": NAN}, [1, "a", NAN], complex(NAN, 0)):
        assert crossed(value) != crossed(value)
    assert isinstance(crossed([0.5, NAN])[1], float)


@given(VALUES, VALUES)
def test_digests_are_equal_when_values_are(a: Any, b: Any) -> None:
    assert (digest(a) == digest(b)) == (a == b)
    assert digest(a) == digest(crossed(a))


@pytest.mark.parametrize(
    ("a", "b"), [([1, 2], [1.0, True + 1]), ([2**60, 1], [2.0**60, 1.0]), ({1: 2.0}, {1.0: 2})]
)
def test_digests_know_equal_numbers(a: Any, b: Any) -> None:
    assert digest(a) == digest(b)


def test_large_values_cross_as_digests() -> None:
    large = list(range(100_000))
    there = plain.decode(plain.abridged(large))
    assert isinstance(there, plain.Large)
    assert there == large
    assert there == [float(n) for n in large]
    assert there != large[:-1]
    assert there == plain.decode(plain.abridged(list(large)))
    assert plain.decode(plain.abridged([1, 2])) == [1, 2]
    assert plain.decode(plain.abridged("x" * 100_000)) != "y" * 100_000

"""A value known by its digest compares exactly as the same value in full."""

from __future__ import annotations

import json
from collections import deque, namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.data import plain
from assay.data.digests import digest

NAN, INF = float("nan"), float("inf")
# Few, so that two drawn values are often equal.
HASHABLE = st.sampled_from(
    [
        0, -0.0, False, Decimal("-0"), 1, True, 1.0, 1 + 0j, Decimal("1.0"), Fraction(1), -1,
        0.5, Decimal("0.50"), Fraction(1, 2), complex(0.5, -0.0), Fraction(1, 3), Decimal("0.1"),
        0.1, Fraction(1, 10), 2**53, 2.0**53, 2**53 + 1, Decimal(2**53 + 1), 10**400,
        Decimal("1e400"), INF, -INF, Decimal("Infinity"), NAN, Decimal("NaN"),
        1j, complex(0.0, NAN), complex(INF, 1), "", "1", "\ud800", "a" * 300, b"", b"1", None,
        (), (1,), (1.0, "a"), ("a", None), frozenset({1}), range(0), range(5, 5), range(1, 4, 2),
    ]
)  # fmt: skip
LEAVES = HASHABLE | st.sampled_from([bytearray(b"1"), {1: 2}.keys(), {1: 2}.items()])
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=3).map(deque)
        | st.dictionaries(HASHABLE, inner, max_size=2)
        | st.sets(HASHABLE, max_size=3)
    ),
    max_leaves=6,
)


def in_full(value: Any) -> Any:
    return plain.decode(json.loads(json.dumps(plain.encode(value))))


@given(VALUES, VALUES)
def test_digests_are_equal_as_the_values_are(a: Any, b: Any) -> None:
    assert (digest(a) == digest(b)) == (in_full(a) == in_full(b))
    assert (digest(a) == digest(in_full(a))) == (in_full(a) == in_full(a))


class Text(str):
    __slots__ = ()


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([0.0, 1.5], [-0.0, 1.5]),
        ([0.5, 1], [Fraction(1, 2), Decimal(1)]),
        ([1j, 2], [1j, 2 + 0j]),
        ([Decimal("0.1"), Fraction(1, 3)], [Fraction(1, 10), Fraction(1, 3)]),
        ([b"x", b"y"], [bytearray(b"x"), b"y"]),
        (["a", "b"], [Text("a"), "b"]),
        ([("a", "b")], [Point("a", Text("b"))]),
        ([deque([1])], [deque([1.0])]),
        ([{1, 2}], [{1: 0, 2: 0}.keys()]),
        ([range(0)], [range(3, 3)]),
    ],
    ids=repr,
)
def test_equal_values_have_equal_digests(a: Any, b: Any) -> None:
    """Large answers are compared by digest, so that a right one must have the expected digest."""
    assert a == b
    assert digest(a) == digest(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([0.5, NAN], [0.5, NAN]),
        # The bytes of these floats are those of the marshalled strings.
        (["", "!"], [6.35580179312646e-310, 9.775796416260432e-150]),
        ([1, [2]], [[1], 2]),
        ([[1], [2]], [[1, 2], []]),
        ({1: 2}, [(1, 2)]),
        ({(1, 2)}, {1: 2}),
        (["a", "b"], ["ab"]),
        (b"a", "a"),
        ([None], []),
        ((1, 2), [1, 2]),
        ([1], deque([1])),
        (range(3), [0, 1, 2]),
        ([2**53], [2**53 + 1]),
        ([2.0**53, 1], [2**53 + 1, 1]),
        (1 + 1j, 1),
        (1 + 2j, 2 + 1j),
        (Fraction(1, 2), [1, 2]),
    ],
    ids=repr,
)
def test_different_values_have_different_digests(a: Any, b: Any) -> None:
    assert digest(a) != digest(b)


def test_what_equals_nothing_has_no_digest_twice() -> None:
    """A NaN, alone or in a list, must differ from itself as it does in Python."""
    for value in (
        NAN,
        [NAN],
        Decimal("sNaN"),
        object(),
        iter([1]),
        {1: 2}.values(),
        [lambda: 1],
        open,
    ):
        assert digest(value) != digest(value)
    assert digest([Decimal("1e999999999")]) != digest([Decimal("1e999999999")])


def test_numpys_numbers_are_numbers() -> None:
    """A large list of them must equal the same list of Python's numbers."""
    numpy = pytest.importorskip("numpy")
    assert digest([numpy.float64(0.5), numpy.int64(2)]) == digest([0.5, 2])
    assert digest(list(numpy.arange(3))) == digest([0, 1, 2])


@pytest.mark.parametrize(
    "value",
    [[0.1] * 100_000, (0.1,) * 100_000, [300] * 60_000, [True] * 60_000],
    ids=["floats", "tuple of floats", "ints", "bools"],
)
def test_what_may_be_right_but_for_a_tolerance_crosses_in_full(value: Any) -> None:
    assert plain.decode(plain.abridged(value)) == value
    assert not isinstance(plain.decode(plain.abridged(value)), plain.Large)


def test_a_guessed_digest_is_no_more_than_a_guess() -> None:
    """A program may send a digest in place of any value: it has to be that of the right one."""
    values: list[Any] = [None, 0, "", [], (), {}, set(), [[]]]
    for expected in (*values, False):
        for guess in values:
            sent = plain.decode({"large": digest(guess)})
            assert (sent == expected) == (guess == expected)
        for text in ("", "0" * 64, digest("x")[:10]):
            assert plain.decode({"large": text}) != expected

"""Likeness of logits: what the figures mean, at values that are known beforehand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.quality.parity.agreement import compare_rows, first_difference, kl_by_position, likeness

np = pytest.importorskip("numpy", reason="needs numpy")
ROWS = np.random.default_rng(0).standard_normal((7, 50)).astype(np.float32) * 4


def test_a_model_is_like_itself() -> None:
    found = likeness(ROWS, ROWS)
    assert found.positions == 7
    assert found.cosine_min == pytest.approx(1.0)
    assert (found.top1_agreement, found.max_abs_difference) == (1.0, 0.0)
    assert found.kl_max == pytest.approx(0.0, abs=1e-12)


def test_known_values() -> None:
    one = np.log(np.array([[0.5, 0.25, 0.25]]))
    other = np.log(np.array([[0.25, 0.5, 0.25]]))
    rows = compare_rows(one, other)
    assert rows.kl[0] == pytest.approx(0.5 * math.log(2) - 0.25 * math.log(2))
    assert not rows.same_top[0]
    assert rows.max_abs[0] == pytest.approx(math.log(2))


def test_opposite_logits() -> None:
    assert likeness(ROWS, -ROWS).cosine_mean == pytest.approx(-1.0)


@given(shift=st.floats(-50, 50))
def test_probabilities_do_not_depend_on_a_shift(shift: float) -> None:
    rows = compare_rows(ROWS, ROWS + np.float32(shift))
    assert rows.kl == pytest.approx(np.zeros(7), abs=1e-4)
    assert rows.same_top.all()


def test_padding_of_a_vocabulary_is_not_compared() -> None:
    padded = np.concatenate([ROWS, np.full((7, 14), -1e9, np.float32)], axis=1)
    assert likeness(ROWS, padded).cosine_min == pytest.approx(1.0)


def test_numbers_that_are_none_are_not_hidden() -> None:
    broken = ROWS.copy()
    broken[3, 3] = np.nan
    with np.errstate(all="ignore"):
        found = likeness(ROWS, broken)
    assert math.isnan(found.cosine_mean)
    assert math.isnan(found.kl_mean)


def test_rows_must_match() -> None:
    with pytest.raises(UsageError):
        compare_rows(ROWS, ROWS[:3])


def test_kl_by_position_is_the_mean_over_prompts() -> None:
    long, short = compare_rows(ROWS, ROWS * 0.5), compare_rows(ROWS[:2], ROWS[:2])
    by_position = kl_by_position([long, short])
    assert len(by_position) == 7
    assert by_position[0] == pytest.approx((long.kl[0] + short.kl[0]) / 2)
    assert by_position[6] == pytest.approx(long.kl[6])


@pytest.mark.parametrize(
    ("one", "other", "where"),
    [("abc", "abc", None), ("abc", "abd", 2), ("abc", "ab", 2), ("", "a", 0), ("", "", None)],
)
def test_where_sequences_part(one: str, other: str, where: int | None) -> None:
    assert first_difference(one, other) == where

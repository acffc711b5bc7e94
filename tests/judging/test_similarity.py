"""Exact match and edit similarity of texts, and their scores."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.judging.measures import common_length, edit_similarity, is_exact_match
from assay.scoring import match_score

SHORT = st.text("ab\n c", max_size=12)


@given(SHORT, SHORT)
def test_the_longest_common_subsequence_is_that_of_the_definition(a: str, b: str) -> None:
    @functools.cache
    def length(i: int, j: int) -> int:
        if i == len(a) or j == len(b):
            return 0
        both = length(i + 1, j + 1) + 1 if a[i] == b[j] else 0
        return max(both, length(i + 1, j), length(i, j + 1))

    assert common_length(a, b) == length(0, 0)


@given(SHORT, SHORT)
def test_similarity_is_symmetric_and_one_only_for_a_match(a: str, b: str) -> None:
    assert 0 <= edit_similarity(a, b) <= 1
    assert edit_similarity(a, b) == edit_similarity(b, a)
    assert (edit_similarity(a, b) == 1) == is_exact_match(a, b)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("    return x\n", True),
        ("    return x", True),
        ("    return x  \n\n", True),
        ("\n    return x\n", True),
        ("return x\n", False),  # indentation counts
        ("    return  x\n", False),
        ("    return y\n", False),
        ("", False),
    ],
)
def test_exact_match_ignores_white_space_at_ends_only(text: str, matches: bool) -> None:
    assert is_exact_match(text, "    return x\n") is matches


def test_similarity_of_known_texts() -> None:
    """As rapidfuzz.fuzz.ratio computes it: 2 * 7 / 16."""
    assert edit_similarity("return x", "return y") == 0.875
    assert edit_similarity("", "") == 1.0
    assert edit_similarity("", "a") == 0.0


def test_scores_average_over_problems_and_count_clusters_once() -> None:
    samples = {"a": [(True, 1.0), (False, 0.5)], "b": [(True, 1.0)], "c": [(False, 0.25)], "d": []}
    clusters = {"a": "P", "b": "P", "c": "Q"}
    found = match_score(samples, clusters)
    assert found is not None
    assert found.exact_match.value == pytest.approx((0.5 + 1 + 0) / 3)
    assert found.edit_similarity.value == pytest.approx((0.75 + 1 + 0.25) / 3)
    assert found.edit_similarity.problems == 3
    independent = match_score(samples)
    assert independent is not None
    assert independent.edit_similarity.high < found.edit_similarity.high
    assert match_score({"a": []}) is None

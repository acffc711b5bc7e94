"""Policies, and decisions by them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.quality.decision import at_least, at_most, overall
from assay.quality.policy import load_policy

FINITE = st.floats(-1e6, 1e6)


def test_ours_has_what_is_promised() -> None:
    policy = load_policy()
    assert policy.parity["same"].cosine == 0.999
    assert policy.parity["4-bit"].cosine == 0.98
    assert {found.perplexity_gap for found in policy.parity.values()} == {0.05}
    assert set(policy.tiers) == {"smoke", "release"}


def test_a_file_says_only_what_is_different(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "parity: {4-bit: {cosine: 0.9}}\n"
        "tiers:\n"
        "  release: {scores: {mbpp: {pass_at_1: 0.5}}}\n"
        "  mine: {perplexity_max: 7}\n"
        "  2: {tokens_per_second_min: 1e-3}\n"
    )
    policy = load_policy(path)
    assert policy.parity["4-bit"].cosine == 0.9
    assert policy.parity["4-bit"].top1 == load_policy().parity["4-bit"].top1
    assert policy.tier("release").scores["mbpp"] == {"pass_at_1": 0.5}
    assert policy.tier("release").parity
    mine = policy.tier("mine")
    assert (mine.check, mine.perplexity_max, mine.tokens_per_second_min) == (False, 7.0, None)
    assert policy.tier("2").tokens_per_second_min == 0.001


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("parities: {}", "unknown field 'parities'"),
        ("tiers: {smoke: {perplexity: 1}}", "unknown field 'perplexity'"),
        ("tiers: {mine: {speed: 1}}", "unknown field 'speed'"),
        ("tiers: {mine: {perplexity_max: .nan}}", "not JSON compliant"),
        ("tiers: {mine: {text_bytes: 2026-01-31}}", "is not a policy"),
        ("gate: high", "expected an object, found str"),
        ("gate: {cosine: high}", "field 'cosine' has an unexpected value 'high'"),
        ("- a\n- b", "expected an object, found list"),
        ("# nothing\n", "expected an object, found NoneType"),
        ("a: [", "is not valid YAML"),
        ("a: 1\n---\nb: 2", "is not valid YAML"),
    ],
)
def test_what_is_no_policy_is_said(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=words) as told:
        load_policy(path)
    assert "\n" not in str(told.value)


def test_a_missing_file_and_an_unknown_tier(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none.yaml: no such file"):
        load_policy(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="Choose smoke, release"):
        load_policy().tier("gold")


@given(low=FINITE, width=st.floats(0, 1e6), bound=FINITE)
def test_an_interval_decides_only_where_it_lies_on_one_side(
    low: float, width: float, bound: float
) -> None:
    high = low + width
    expected = "GO" if low >= bound else "NO-GO" if high < bound else "INCONCLUSIVE"
    assert at_least(low, high, bound) == expected
    mirrored = "GO" if high <= bound else "NO-GO" if low > bound else "INCONCLUSIVE"
    assert at_most(low, high, bound) == mirrored


def test_what_is_no_number_does_not_go() -> None:
    assert at_least(math.nan, math.nan, 0) == "NO-GO"
    assert at_most(math.nan, math.nan, 0) == "NO-GO"


def test_all_together() -> None:
    assert overall(["GO", "GO"]) == "GO"
    assert overall(["GO", "INCONCLUSIVE"]) == "INCONCLUSIVE"
    assert overall(["INCONCLUSIVE", "NO-GO", "GO"]) == "NO-GO"
    assert overall([]) == "INCONCLUSIVE"

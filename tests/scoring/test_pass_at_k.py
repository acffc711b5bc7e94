"""The estimator against exact rational arithmetic."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.scoring import pass_at_k
from tests.in_process import run_command


def exact(n: int, c: int, k: int) -> Fraction:
    return 1 - Fraction(math.comb(n - c, k), math.comb(n, k))


@pytest.mark.slow
def test_exact_to_1e12_for_all_n_up_to_200() -> None:
    worst = 0.0
    for n in range(1, 201):
        for c in range(n + 1):
            # C(n-c, k) / C(n, k) as a running product of exact integers
            top, bottom = 1, 1
            for k in range(1, n + 1):
                top *= max(0, n - c - k + 1)
                bottom *= n - k + 1
                value = (bottom - top) / bottom  # one correctly rounded division of integers
                worst = max(worst, abs(pass_at_k(n, c, k) - value))
    assert worst <= 1e-12


@given(st.integers(1, 400), st.data())
def test_agrees_with_fractions(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    assert pass_at_k(n, c, k) == pytest.approx(float(exact(n, c, k)), abs=1e-12)


@pytest.mark.parametrize(
    ("c", "k"), [(1, 1), (1, 10**6 // 2), (3, 7), (10**6 - 1, 1), (500_000, 20), (20, 999_000)]
)
def test_a_million_samples_neither_overflow_nor_cancel(c: int, k: int) -> None:
    n = 10**6
    terms, other = min(c, k), max(c, k)
    remaining = Fraction(1)
    for j in range(terms):
        remaining *= Fraction(n - j - other, n - j)
    assert pass_at_k(n, c, k) == pytest.approx(float(1 - remaining), rel=1e-10)


@pytest.mark.no_cover
def test_half_a_million_of_a_million_is_quick_and_certain() -> None:
    started = time.process_time()
    assert pass_at_k(10**6, 400_000, 500_000) == 1.0
    assert time.process_time() - started < 10


@pytest.mark.parametrize(("n", "c", "k"), [(5, 1, 10), (0, 0, 1), (5, 6, 1), (5, -1, 1), (5, 1, 0)])
def test_what_has_no_answer_is_an_error_not_a_number(n: int, c: int, k: int) -> None:
    with pytest.raises(UsageError):
        pass_at_k(n, c, k)


def test_the_command_computes_other_measures(tmp_path: Path) -> None:
    for measure, value in (("pass@k", "0.991666666667"), ("pass^k", "0.291666666667")):
        done = run_command("passk", "10", "7", "3", "--measure", measure, folder=tmp_path)
        assert done.out == f"{value}\n"
    table = tmp_path / "t.tsv"
    table.write_text("a\t4\t4\nb\t4\t2\n")
    done = run_command(
        "passk", "--tsv", str(table), "-k", "2", "--measure", "majority@k", folder=tmp_path
    )
    assert done.out.startswith("majority@2 0.750000 [")
    done = run_command("passk", "200000", "1", "1", "--measure", "majority@k", folder=tmp_path)
    assert (done.code, "too large" in done.err) == (2, True)

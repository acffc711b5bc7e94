"""Families of tests, groups of models, suspicious problems, and sequential looks."""

from __future__ import annotations

import gzip
import itertools
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.scoring import Tally, estimate
from assay.scoring.clusters import design_effect, difference_interval, pool
from assay.scoring.comparison import group_verdicts
from assay.scoring.decisions import ModelGroups, group_models, holm
from assay.scoring.noise import TwoNoises, two_noises
from assay.scoring.pass_at_k import majority_at_k, pass_hat_k
from assay.scoring.problems import difficulties, suspicious_problems
from assay.scoring.sequential import confidence_sequence, look
from assay.types import Estimate

RECORDED = "completions/humaneval_poe_ollama.jsonl.gz"
MODELS = ("codegemma:7b", "codellama:7b", "deepseek-coder:6.7b", "qwen2.5-coder:7b", "codegemma:2b")
Verdicts = Mapping[str, Sequence[bool]]


@pytest.fixture
def recorded(shared_data: Path) -> Verdicts:
    """The recorded verdicts of five models on HumanEval, in the order of the tasks."""
    found: dict[str, dict[str, bool]] = {name: {} for name in MODELS}
    with gzip.open(shared_data / RECORDED, "rt") as lines:
        for record in map(json.loads, lines):
            name = record["model"].removesuffix(" (ollama)")
            if name in found:
                found[name][record["task_id"]] = record["verdict"]["base"] == "pass"
    tasks = sorted(found[MODELS[0]])
    return {name: [verdicts[task] for task in tasks] for name, verdicts in found.items()}


def group(verdicts: Verdicts) -> ModelGroups:
    return group_verdicts(
        {
            name: [Tally(str(i), 1, int(passed)) for i, passed in enumerate(found)]
            for name, found in verdicts.items()
        }
    )


def test_recorded_models_in_groups(recorded: Verdicts) -> None:
    assert group(recorded).letters == {
        "qwen2.5-coder:7b": "a",
        "deepseek-coder:6.7b": "b",
        "codegemma:7b": "c",
        "codellama:7b": "c",
        "codegemma:2b": "d",
    }


@pytest.mark.slow
def test_no_false_claim_beyond_the_level_among_permuted_labels(recorded: Verdicts) -> None:
    """Labels permuted within every problem: no model is better than another."""
    draw = random.Random(20260117)
    columns = list(zip(*recorded.values(), strict=True))
    false = 0
    for _ in range(1000):
        rows = zip(*(draw.sample(column, len(column)) for column in columns), strict=True)
        shuffled = {name: list(row) for name, row in zip(recorded, rows, strict=True)}
        false += any(pair.adjusted_p_value <= 0.05 for pair in group(shuffled).pairs)
    assert false <= 50


def test_models_share_a_letter_exactly_if_they_are_not_told_apart() -> None:
    draw = random.Random(5)
    for _ in range(200):
        names = [f"m{i}" for i in range(draw.randint(2, 7))]
        scores = {name: draw.random() for name in names}
        p_values = {
            pair: draw.choice([1e-6, 0.5]) for pair in itertools.combinations(names, 2)
        }  # fmt: skip
        found = group_models(scores, p_values)
        for pair in found.pairs:
            shared = set(found.letters[pair.a]) & set(found.letters[pair.b])
            assert bool(shared) == (pair.adjusted_p_value > 0.05)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_corrected_p_values_keep_their_order_and_never_fall(p_values: list[float]) -> None:
    found = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, found, strict=True))
    order = sorted(range(len(found)), key=lambda i: p_values[i])
    assert [found[i] for i in order] == sorted(found)


def tallies(passed: str) -> list[Tally]:
    return [Tally(str(i), 1, int(mark)) for i, mark in enumerate(passed)]


def test_suspicious_problems() -> None:
    """Problem 8 is failed by both strong models, and problem 9 is passed by a weak one only."""
    table = {
        "strong": tallies("1111111100"),
        "good": tallies("1111110000"),
        "weak": tallies("1100000001"),
        "poor": tallies("1000000000"),
    }
    found = {one.task_id: one.suspicion for one in suspicious_problems(table)}
    assert found == {"8": "failed-by-strong", "9": "inverted"}
    assert suspicious_problems({k: table[k] for k in ("strong", "good", "weak")}) == []
    hardest = difficulties(table)[0]
    assert (hardest.task_id, hardest.difficulty, hardest.high) == ("8", 1.0, 1.0)
    assert hardest.low < 0.6


def test_a_run_of_clusters_has_a_wider_interval() -> None:
    alone = [Tally(str(i), 1, int(i % 20 < 7)) for i in range(200)]
    together = [Tally(t.task_id, 1, t.passed, f"o{i % 20}") for i, t in enumerate(alone)]
    single, clustered = estimate(alone, 1), estimate(together, 1)
    assert single is not None
    assert clustered is not None
    assert clustered.value == single.value
    assert clustered.high - clustered.low > 2.5 * (single.high - single.low)
    assert design_effect([t.passed for t in together], [t.cluster for t in together]) > 9


def test_a_problem_without_cluster_is_its_own() -> None:
    named = [Tally(str(i), 1, i % 2, "0" if i == 5 else None) for i in range(20)]
    plain = [Tally(str(i), 1, i % 2) for i in range(20)]
    assert estimate(named, 1) == estimate(plain, 1)


def test_other_measures_have_intervals_too() -> None:
    found = [Tally(str(i), 10, i % 11) for i in range(110)]
    for measure in (pass_hat_k, majority_at_k):
        one = estimate(found, 5, measure)
        assert one is not None
        assert one.low < one.value < one.high
    passes, hat = estimate(found, 5), estimate(found, 5, pass_hat_k)
    assert passes is not None
    assert hat is not None
    assert hat.value < passes.value


def score_of(value: float, low: float, high: float) -> Estimate:
    return Estimate(1, value, low, high, problems=100)


def test_pooled_scores_weigh_benchmarks_alike() -> None:
    found = pool([score_of(0.5, 0.44, 0.56), score_of(0.7, 0.62, 0.78)], [{"a", "b"}, {"c"}])
    assert found.value == pytest.approx(0.6)
    assert found.interval == pytest.approx((0.55, 0.65))  # a 6-8-10 triangle, halved
    assert (found.problems, found.level, found.method) == (200, 0.95, "pooled-half-widths")


def test_benchmarks_that_share_problems_count_as_dependent() -> None:
    scores = [score_of(0.5, 0.44, 0.56), score_of(0.7, 0.62, 0.78)]
    assert pool(scores, [{"a", "b"}, {"b"}]).interval == pytest.approx((0.53, 0.67))
    # The third one joins the first two, which share nothing with each other.
    three = [*scores, score_of(0.6, 0.54, 0.66)]
    assert pool(three, [{"a"}, {"b"}, {"a", "b"}]).low == pytest.approx(0.6 - 0.2 / 3)


@pytest.mark.parametrize("p", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("shared", [False, True])
def test_pooled_intervals_cover_the_mean(p: float, shared: bool) -> None:
    draw = random.Random(11)
    covered, rounds = 0, 1000
    for _ in range(rounds):
        first = [draw.random() < p for _ in range(164)]
        # With shared problems the second benchmark is a harder form of the first.
        second = (
            [one and draw.random() < 0.9 for one in first]
            if shared
            else [draw.random() < 0.9 * p for _ in range(378)]
        )
        scores = [
            estimate([Tally(str(i), 1, int(one)) for i, one in enumerate(found)], 1)
            for found in (first, second)
        ]
        names = [{0}, {0} if shared else {1}]
        low, high = pool([one for one in scores if one], names).interval
        covered += low <= 0.95 * p <= high
    assert covered / rounds >= 0.935, covered


def test_a_pooled_interval_stays_within_its_bounds() -> None:
    perfect = score_of(1.0, 0.98, 1.0)
    found = pool([perfect, perfect], [{"a"}, {"b"}])
    assert (found.value, found.high) == (1.0, 1.0)
    assert 0.98 < found.low < 1.0


def test_an_interval_of_one_cluster_is_everything() -> None:
    found = difference_interval([(0.0, 0.5), (0.0, 0.2)], 20, ["o", "o"])
    assert (found.low, found.high) == (-1.0, 1.0)


def test_two_noises_add_up_to_wangs_formulas() -> None:
    draw = random.Random(7)
    pairs = [
        (Tally(str(i), 8, draw.randint(0, 8)), Tally(str(i), 6, draw.randint(0, 6)))
        for i in range(50)
    ]
    a, b = [x.passed / 8 for x, _ in pairs], [y.passed / 6 for _, y in pairs]
    within_a, within_b = (sum(p * (1 - p) for p in shares) / 50 for shares in (a, b))
    bias = within_a / 7 + within_b / 5
    mean = (sum(b) - sum(a)) / 50
    data = sum((y - x - mean) ** 2 for x, y in zip(a, b, strict=True)) / 49 - bias
    found = two_noises(pairs)
    assert found is not None
    assert found.problems**2 * 50 == pytest.approx(data)
    assert found.sampling**2 * 50 == pytest.approx(bias)
    assert found.with_samples(1) == pytest.approx(found.total)
    assert two_noises([(Tally("t", 1, 1), Tally("t", 1, 0))] * 5) is None


def test_samples_that_are_not_independent_have_no_more_noise_than_was_measured() -> None:
    alike = [(Tally(f"t{n}", 10, n % 10), Tally(f"t{n}", 10, n % 10 + (n == 3))) for n in range(40)]
    found = two_noises(alike)
    assert found is not None
    assert found.problems == 0
    assert found.sampling == found.total == pytest.approx(0.1 / 40)
    assert two_noises([(a, a) for a, _ in alike]) is None


def test_more_samples_halve_the_error_or_never_do() -> None:
    noise = TwoNoises(problems=0.3, sampling=0.91**0.5, total=1.0)
    factor = noise.factor_to_halve()
    assert factor is not None
    assert noise.with_samples(factor) == pytest.approx(0.5)
    assert TwoNoises(problems=0.8, sampling=0.6, total=1.0).factor_to_halve() is None


def test_looks_become_narrower_and_decide() -> None:
    state = None
    widths = []
    for _ in range(30):
        state = look(state, 164, 12, 4)
        widths.append(state.interval.half_width)
        if state.decision != "undecided":
            break
    assert state is not None
    assert (state.decision, state.pairs) == ("better", 164 * state.rounds)
    assert widths == sorted(widths, reverse=True)
    assert state.e_value > 20


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 5000))
def test_a_confidence_sequence_contains_the_mean(gained: int, lost: int, agreed: int) -> None:
    pairs = gained + lost + agreed
    low, high = confidence_sequence(pairs, gained, lost)
    assert -1 <= low <= high <= 1
    if pairs:
        assert low <= (gained - lost) / pairs <= high
    mirrored = confidence_sequence(pairs, lost, gained)
    assert mirrored == pytest.approx((-high, -low))

"""Simulate how often intervals cover the truth and tests err, and print the tables of the docs.

    python benchmarks/simulate_statistics.py [rounds]

Problems are drawn from a population of uneven difficulty (a beta distribution with most of its mass
near 0 and 1, as benchmarks have). A second model has the same pass rate on most problems and an
independent one on the others. Verdicts are drawn from these rates.
"""

from __future__ import annotations

import functools
import itertools
import sys
from dataclasses import dataclass
from typing import Any

import numpy

from assay.scoring import Tally, estimate
from assay.scoring.comparison import Statistics, compare_pairs
from assay.scoring.sequential import look

SPREAD = 0.5  # of the beta distribution: below 2 it is U-shaped
CLUSTER = 4  # problems per original
PROBLEMS, RATES, SAMPLES = (20, 164, 500), (0.02, 0.1, 0.5, 0.9, 0.98), (1, 10)


@dataclass(frozen=True, slots=True)
class Scenario:
    """Set how problems and models are drawn.

    ``changed`` is the share of problems on which the second model differs. Its mean pass rate is
    higher by ``shift`` on these (lower, if the rate is above one half).
    """

    problems: int
    rate: float
    samples: int
    changed: float = 0.2
    shift: float = 0.0
    clustered: bool = False

    @property
    def other_rate(self) -> float:
        return self.rate + (self.shift if self.rate <= 0.5 else -self.shift)

    @property
    def difference(self) -> float:
        return self.changed * (self.other_rate - self.rate)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Count how often each interval covered, and how often each claim was made."""

    covered_score: float  # the interval of pass@1
    covered_difference: float
    significant: float  # p <= 0.05
    claimed: float  # decision better or worse
    equivalent: float
    half_width: float  # median, of the difference


Pairs = list[tuple[Tally, Tally]]


def draw_pairs(scenario: Scenario, draw: numpy.random.Generator) -> Pairs:
    """Return the tallies of two models on problems of a scenario."""
    size = CLUSTER if scenario.clustered else 1
    originals = scenario.problems // size
    rates = draw.beta(SPREAD * scenario.rate, SPREAD * (1 - scenario.rate), originals)
    other = scenario.other_rate
    fresh = draw.beta(SPREAD * other, SPREAD * (1 - other), originals)
    others = numpy.where(draw.random(originals) < scenario.changed, fresh, rates)
    passed: list[Any] = [
        draw.binomial(scenario.samples, numpy.repeat(r, size)) for r in (rates, others)
    ]
    pairs = []
    for i, (a, b) in enumerate(zip(*(p.tolist() for p in passed), strict=True)):
        cluster = f"o{i // size}" if scenario.clustered else None
        task, n = f"t{i}", scenario.samples
        pairs.append((Tally(task, n, a, cluster), Tally(task, n, b, cluster)))
    return pairs


def compare_drawn(pairs: Pairs) -> Statistics:
    """Compare as usual. Tables of single samples come again and again, so they are cached."""
    if any(a.n > 1 or a.cluster for a, _ in pairs):
        return compare_pairs(pairs)
    outcomes = [(a.passed, b.passed) for a, b in pairs]
    kinds = ((0, 0), (0, 1), (1, 0), (1, 1))
    return _compare_table(*(outcomes.count(kind) for kind in kinds))


@functools.cache
def _compare_table(neither: int, gained: int, lost: int, both: int) -> Statistics:
    outcomes = [(0, 0)] * neither + [(0, 1)] * gained + [(1, 0)] * lost + [(1, 1)] * both
    return compare_pairs([(Tally("t", 1, a), Tally("t", 1, b)) for a, b in outcomes])


@functools.cache
def simulate(scenario: Scenario, rounds: int, seed: int = 20_260_101) -> Outcome:
    """Return how often intervals cover and claims are made."""
    draw = numpy.random.default_rng(seed)
    score = difference = significant = claimed = equivalent = 0
    widths = []
    for _ in range(rounds):
        pairs = draw_pairs(scenario, draw)
        one = estimate([a for a, _ in pairs], 1)
        assert one is not None
        score += one.low <= scenario.rate <= one.high
        found = compare_drawn(pairs)
        difference += found.interval.low <= scenario.difference <= found.interval.high
        significant += found.test.p_value <= 0.05
        claimed += found.decision in ("better", "worse")
        equivalent += found.decision == "equivalent"
        widths.append(found.interval.half_width)
    return Outcome(
        covered_score=score / rounds,
        covered_difference=difference / rounds,
        significant=significant / rounds,
        claimed=claimed / rounds,
        equivalent=equivalent / rounds,
        half_width=float(numpy.median(widths)),
    )


@dataclass(frozen=True, slots=True)
class Peeking:
    """Hold what sequential evaluations decided, and after how many rounds of samples."""

    claimed: float
    wrong: float  # claims that are not true
    equivalent: float
    rounds: float  # mean


def simulate_peeking(
    difference: float,
    runs: int,
    problems: int = 164,
    budget: int = 20,
    margin: float = 0.02,
    discordance: float = 0.1,
    seed: int = 20_260_101,
) -> Peeking:
    """Return what looking after every round decides, if flips are ``discordance`` of the samples.

    Half of the problems flip, each at random in every round, with another chance on each.
    """
    draw = numpy.random.default_rng(seed)
    claimed = wrong = equivalent = total = 0
    for _ in range(runs):
        flipping = draw.random(problems) * 2 * discordance  # chance of a flip, by problem
        flipping *= discordance / flipping.mean()
        up = numpy.clip(flipping / 2 + difference / 2, 0, 1)
        down = numpy.clip(flipping / 2 - difference / 2, 0, 1)
        truth = float((up - down).mean())
        state = None
        for _ in range(budget):
            chance = draw.random(problems)
            gained = int((chance < up).sum())
            lost = int(((chance >= up) & (chance < up + down)).sum())
            state = look(state, problems, gained, lost, margin)
            if state.decision != "undecided":
                break
        assert state is not None
        total += state.rounds
        decided = state.decision in ("better", "worse")
        right = truth != 0 and (state.decision == "better") == (truth > 0)
        claimed += decided
        equivalent += state.decision == "equivalent"
        wrong += (decided and not right) or (
            state.decision == "equivalent" and abs(truth) >= margin
        )
    return Peeking(claimed / runs, wrong / runs, equivalent / runs, total / runs)


def scenarios() -> list[Scenario]:
    """Return all scenarios of the docs: null and shifted, and clustered ones."""
    found = [
        Scenario(problems, rate, samples, shift=shift)
        for samples, problems, rate, shift in itertools.product(
            SAMPLES, PROBLEMS, RATES, (0.0, 0.3)
        )
    ]
    found += [
        Scenario(164, rate, samples, shift=shift, clustered=True)
        for samples, rate, shift in itertools.product(SAMPLES, RATES, (0.0, 0.3))
    ]
    return found


def main() -> None:
    """Print a row for every scenario, then the sequential evaluations."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print("| samples | problems | pass@1 | true difference | pass@1 covered | difference covered |"
          " p <= 0.05 | claimed |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for scenario in scenarios():
        found = simulate(scenario, rounds)
        problems = f"{scenario.problems}{' clustered' if scenario.clustered else ''}"
        cells = [
            scenario.samples, problems, f"{100 * scenario.rate:g} %",
            f"{100 * scenario.difference:+.1f}", f"{100 * found.covered_score:.1f} %",
            f"{100 * found.covered_difference:.1f} %", f"{100 * found.significant:.1f} %",
            f"{100 * found.claimed:.1f} %",
        ]  # fmt: skip
        print("|", " | ".join(map(str, cells)), "|", flush=True)
    print("\n| true difference | claimed | wrong | equivalent | mean rounds of 20 |")
    print("|---|---|---|---|---|")
    for difference in (0.0, 0.01, 0.02, 0.03, 0.05, 0.08):
        peeking = simulate_peeking(difference, max(rounds, 10_000) if not difference else rounds)
        print(f"| {100 * difference:+.0f} points | {100 * peeking.claimed:.1f} % | "
              f"{100 * peeking.wrong:.2f} % | {100 * peeking.equivalent:.1f} % | "
              f"{peeking.rounds:.1f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()

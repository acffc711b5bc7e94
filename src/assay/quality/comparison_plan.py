"""Plan an evaluation: how many problems and samples show a difference, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from assay.errors import UsageError
from assay.runs import Result
from assay.runs.compare import tally_problems
from assay.scoring import Tally
from assay.scoring.decisions import ALPHA
from assay.scoring.noise import sampling_variance, two_noises
from assay.scoring.power import (
    CORRELATION,
    POWER,
    PROBLEM_NOISE,
    SAMPLING_NOISE,
    UNRELATED,
    USUAL_DISCORDANCE,
    detectable_by_error,
    detectable_difference,
    problems_for_sign_test,
    problems_needed,
    samples_needed,
    sign_test_power,
)

# Shares of problems that only one of two models passes, where no two pilots measure it. A quantised
# file and its original are near the first, checkpoints of one training near the second, models of
# different families near the last (24 % to 38 % between recorded 7B models on HumanEval).
DISCORDANCES = (0.05, USUAL_DISCORDANCE, 0.25)
SAMPLES = (1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True, slots=True)
class SignTestPlan:
    """The power of one sample per problem at a share of flips, by the exact sign test."""

    discordance: float
    power: float  # to show the difference with the benchmark's problems
    detectable: float | None  # the smallest difference that the benchmark shows
    problems_needed: int | None  # none: more than a million


@dataclass(frozen=True, slots=True)
class SamplesPlan:
    """The smallest difference that a number of samples per problem shows."""

    samples: int
    standard_error: float
    detectable: float


@dataclass(frozen=True, slots=True)
class Noises:
    """The variances that samples are planned with.

    ``problems`` is the variance of the true difference between problems. ``sampling`` is that of
    one sample of each model, added.
    """

    problems: float
    sampling: float
    source: str  # where they come from


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of the samples of one model, from a pilot run."""

    samples: int
    tokens: int
    minutes: float | None  # none: the pilot did not record it
    price: float | None


@dataclass(frozen=True, slots=True)
class Plan:
    """The differences that a benchmark can show, and their cost."""

    benchmark: str
    problems: int
    difference: float
    power: float
    alpha: float
    single: tuple[SignTestPlan, ...]
    noises: Noises
    several: tuple[SamplesPlan, ...]
    samples_needed: int | None  # per problem; none: no number is enough
    problems_needed: int  # with any number of samples
    cost: Cost | None  # of the needed samples, or of one per problem if no number is enough


def plan(
    benchmark: str,
    problems: int,
    difference: float,
    power: float = POWER,
    pilots: Sequence[Result] = (),
    alpha: float = ALPHA,
) -> Plan:
    """Return how many problems and samples show ``difference`` with probability ``power``.

    One pilot tells the cost and, with several samples per problem, its sampling noise. Two pilots
    of the same problems measure everything: what differs between their models.
    """
    _check(difference, power, pilots)
    pairs = _pairs(pilots)
    discordances = (_discordance(pairs),) if pairs else DISCORDANCES
    noises = _noises(pilots, pairs)
    needed = samples_needed(difference, problems, noises.problems, noises.sampling, power, alpha)
    return Plan(
        benchmark,
        problems,
        difference,
        power,
        alpha,
        tuple(
            SignTestPlan(
                share,
                sign_test_power(problems, share, difference, alpha),
                detectable_difference(problems, share, power, alpha),
                problems_for_sign_test(difference, share, power, alpha),
            )
            for share in discordances
        ),
        noises,
        tuple(
            SamplesPlan(k, error, detectable_by_error(error, power, alpha))
            for k in SAMPLES
            for error in [math.sqrt((noises.problems + noises.sampling / k) / problems)]
        ),
        needed,
        math.ceil(problems_needed(difference, noises.problems, 0.0, power, alpha)),
        _cost(pilots[0], problems * (needed or 1)) if pilots else None,
    )


def _check(difference: float, power: float, pilots: Sequence[Result]) -> None:
    if not 0 < difference < 1:
        raise UsageError(
            f"--difference {100 * difference:g}: must be above 0 and below 100 points."
        )
    if not 0 < power < 1:
        raise UsageError(f"--power {power:g}: must be between 0 and 1, such as 0.8.")
    if len(pilots) > 2:
        raise UsageError("--pilot: is given more than twice. Give one or two runs.")
    for pilot in pilots:
        if not tally_problems(pilot):
            raise UsageError(f"{pilot.run}: has no judged problem. Choose another pilot.")


def _pairs(pilots: Sequence[Result]) -> list[tuple[Tally, Tally]]:
    """Return the common problems of two pilots; none if there are not two."""
    if len(pilots) < 2:
        return []
    a, b = map(tally_problems, pilots)
    pairs = [(a[task], b[task]) for task in a if task in b]
    if not pairs:
        raise UsageError(
            "--pilot: the two runs have no judged problem in common. Give two of one benchmark."
        )
    return pairs


def _discordance(pairs: Sequence[tuple[Tally, Tally]]) -> float:
    """Return the chance that only one of two samples of a problem passes."""
    shares = [(a.passed / a.n, b.passed / b.n) for a, b in pairs]
    return math.fsum(x * (1 - y) + y * (1 - x) for x, y in shares) / len(shares)


def _noises(pilots: Sequence[Result], pairs: Sequence[tuple[Tally, Tally]]) -> Noises:
    if pairs and (noise := two_noises(pairs)):
        n = len(pairs)
        a, b = zip(*pairs, strict=True)
        alone = math.fsum(sampling_variance(t) / t.n for pair in pairs for t in pair) / n / n
        shared = noise.sampling**2 / alone if alone else 1.0  # less than 1 if seeds are the same
        sampling = shared * (_mean_sampling(a) + _mean_sampling(b))
        return Noises(n * noise.problems**2, sampling, "measured by both pilots")
    if pairs:  # of single samples, whose flips are the sum of both noises
        scale = _discordance(pairs) / (PROBLEM_NOISE + SAMPLING_NOISE)
        source = "flips measured by both pilots, their part in samples assumed"
        return Noises(scale * PROBLEM_NOISE, scale * SAMPLING_NOISE, source)
    for pilot in pilots:
        tallies = list(tally_problems(pilot).values())
        if len(tallies) > 1 and all(tally.n > 1 for tally in tallies):
            within = _mean_sampling(tallies)
            shares = [t.passed / t.n for t in tallies]
            mean = math.fsum(shares) / len(shares)
            variance = math.fsum((v - mean) ** 2 for v in shares) / (len(shares) - 1)
            between = variance - within / tallies[0].n
            source = f"sampling by the pilot, correlation {CORRELATION:g} of the models assumed"
            return Noises(UNRELATED * max(0.0, between), 2 * within, source)
    source = f"assumed: uniform pass rates, correlation {CORRELATION:g} of the models"
    return Noises(PROBLEM_NOISE, SAMPLING_NOISE, source)


def _mean_sampling(tallies: Sequence[Tally]) -> float:
    return math.fsum(map(sampling_variance, tallies)) / len(tallies)


def _cost(pilot: Result, samples: int) -> Cost | None:
    """Return the cost of ``samples`` samples, each like those of the pilot; None if unknown."""
    factor = samples / sum(problem.n for problem in pilot.problems)
    timing = pilot.timing
    if not timing.tokens_generated:
        return None  # recorded completions
    parallel = pilot.environment.engine.get("parallel", 1)
    at_once = parallel if isinstance(parallel, int) and parallel > 0 else 1
    seconds = timing.generating_s or timing.inference_s / at_once
    return Cost(
        samples,
        round(timing.tokens_generated * factor),
        round(seconds * factor / 60, 1) if timing.inference_s else None,
        None if timing.cost is None else round(timing.cost * factor, 6),
    )

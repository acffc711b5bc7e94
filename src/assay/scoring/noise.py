"""Separate the noise of samples from that of problems (Wang 2025, arXiv 2512.21326)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from assay.scoring.pass_at_k import Tally


@dataclass(frozen=True, slots=True)
class TwoNoises:
    """Hold the standard errors of a mean difference, and what more samples would change.

    ``sampling`` becomes smaller with more samples per problem. ``problems`` does so only with more
    problems.
    """

    problems: float
    sampling: float
    total: float

    def with_samples(self, factor: float) -> float:
        """Return the standard error with ``factor`` times as many samples per problem."""
        return math.sqrt(self.problems**2 + self.sampling**2 / factor)

    def factor_to_halve(self) -> float | None:
        """Return how many times the samples halve the error, or None if no number does."""
        rest = self.total**2 / 4 - self.problems**2
        return self.sampling**2 / rest if rest > 0 else None


def sampling_variance(tally: Tally) -> float:
    """Return the unbiased variance of one sample's verdict. It needs two samples."""
    share = tally.passed / tally.n
    return share * (1 - share) * tally.n / (tally.n - 1)


def two_noises(
    pairs: Sequence[tuple[Tally, Tally]], standard_error: float | None = None
) -> TwoNoises | None:
    """Return the two parts of the standard error of B - A, or None if they are unknown.

    They are unknown with one sample per problem, and where nothing varies.

    ``standard_error`` is the whole one if it is clustered. The part of the problems is what remains
    after subtracting the part of the samples, and at least 0. The part of the samples is at most
    the whole: two models that are nearly the same give nearly the same texts to the same seeds.
    """
    if len(pairs) < 2 or any(min(a.n, b.n) < 2 for a, b in pairs):
        return None
    n = len(pairs)
    parts = [sampling_variance(a) / a.n + sampling_variance(b) / b.n for a, b in pairs]
    if standard_error is None:
        deltas = [b.passed / b.n - a.passed / a.n for a, b in pairs]
        mean = math.fsum(deltas) / n
        standard_error = math.sqrt(math.fsum((d - mean) ** 2 for d in deltas) / (n - 1) / n)
    if standard_error == 0:
        return None
    sampling = min(math.fsum(parts) / n / n, standard_error**2)
    problems = math.sqrt(standard_error**2 - sampling)
    return TwoNoises(problems, math.sqrt(sampling), standard_error)

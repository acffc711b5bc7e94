"""Decide while samples are still being added, with any number of looks.

A round adds one sample of every problem to both models. Flips of a round are problems that only one
of the two passes in it.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction

from assay.scoring.decisions import MARGIN, Decision, decide
from assay.scoring.distributions import solve
from assay.scoring.intervals import LEVEL, Interval

# Bets that the confidence sequence mixes; each is best for about 8 / bet^2 flips.
BETS = (0.04, 0.08, 0.16, 0.3, 0.5, 0.8)


def flips_e_value(gained: int, lost: int) -> float:
    """Return the e-value against fair flips: 2^n s! f! / (n+1)!, a uniform mixture of coins.

    If every problem were as likely gained as lost, it would ever reach 1/alpha with a probability
    of at most alpha.
    """
    flips = gained + lost
    try:
        return float(Fraction(1 << flips, (flips + 1) * math.comb(flips, gained)))
    except OverflowError:
        return math.inf


@dataclass(frozen=True, slots=True)
class Look:
    """Hold the flips up to a round, and what they show about these problems.

    ``interval`` is a confidence sequence of the mean difference on exactly these problems: all of
    a run's intervals cover it together with probability ``level``. It says nothing about others.
    """

    rounds: int
    pairs: int  # of samples
    gained: int
    lost: int
    interval: Interval
    e_value: float
    decision: Decision


def confidence_sequence(
    pairs: int, gained: int, lost: int, level: float = LEVEL
) -> tuple[float, float]:
    """Return limits of the mean difference that hold at all times together.

    They are an empirical Bernstein confidence sequence (Howard et al. 2021, theorem 4, with the
    prediction 0): a mixture over ``BETS`` of exp(bet * (S - D t) - psi(bet) * flips), where psi(x)
    = -log(1 - x) - x, exceeds 2/alpha for the true D with probability at most alpha/2. Problems may
    differ, and so may their differences; only samples must be independent.
    """
    if not pairs:
        return -1.0, 1.0
    surplus, flips = gained - lost, gained + lost
    low = solve(lambda d: -_log_excess(surplus - d * pairs, flips, level), -1.0, 1.0)
    high = -solve(lambda d: -_log_excess(-surplus - d * pairs, flips, level), -1.0, 1.0)
    return low, high


def _log_excess(deviation: float, flips: int, level: float) -> float:
    """Return the logarithm of the mixture minus that of its threshold."""
    logs = [bet * deviation - (-math.log1p(-bet) - bet) * flips for bet in BETS]
    largest = max(logs)
    mixture = largest + math.log(math.fsum(math.exp(x - largest) for x in logs) / len(BETS))
    return mixture - math.log(2 / (1 - level))


def look(
    before: Look | None,
    pairs: int,
    gained: int,
    lost: int,
    margin: float = MARGIN,
    level: float = LEVEL,
) -> Look:
    """Return what one more round shows, given its pairs of samples and its flips."""
    rounds = 1
    if before is not None:
        rounds, pairs = before.rounds + 1, before.pairs + pairs
        gained, lost = before.gained + gained, before.lost + lost
    low, high = confidence_sequence(pairs, gained, lost, level)
    if before is not None:  # what an earlier look excluded stays excluded
        low, high = max(low, before.interval.low), min(high, before.interval.high)
    interval = Interval(low, max(low, high), level, "confidence-sequence-bernstein")
    e_value = min(flips_e_value(gained, lost), sys.float_info.max)  # JSON has no infinity
    return Look(rounds, pairs, gained, lost, interval, e_value, decide(interval, margin))

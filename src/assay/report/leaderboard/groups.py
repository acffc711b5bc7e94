"""Group the models of a column that cannot be distinguished."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction

from assay.runs import Result
from assay.runs.compare import tally_problems
from assay.scoring import Tally
from assay.scoring.clusters import name_clusters
from assay.scoring.decisions import group_models
from assay.scoring.permutation import sign_flip_test

# All pairs are tested. On HumanEval, 50 models (1,225 pairs) take 2 s of CPU time.
MOST_MODELS = 50


def group_by_tests(results: Mapping[str, Result]) -> Mapping[str, str]:
    """Return letters for models that cannot be distinguished: paired tests of all pairs, by Holm.

    There are no letters for one model, and none for more than ``MOST_MODELS``.
    """
    tallies = {name: tally_problems(result) for name, result in results.items()}
    if not 1 < len(tallies) <= MOST_MODELS:
        return {}
    p_values = {
        (a, b): compute_p_value(tallies[a], tallies[b])
        for a, b in itertools.combinations(tallies, 2)
    }
    scores = {name: result.pass_at[1].value for name, result in results.items()}
    return group_models(scores, p_values).letters


def compute_p_value(a: Mapping[str, Tally], b: Mapping[str, Tally]) -> float:
    """Return the p-value of the paired test that ``assay compare`` uses.

    It is 1 if no problem was judged in both. With one sample per problem, flipping signs is
    McNemar's exact test.
    """
    common = [task for task in a if task in b]
    clusters = name_clusters([b[task] if b[task].cluster else a[task] for task in common])
    sums: dict[object, Fraction] = {}
    for position, task in enumerate(common):
        cluster = clusters[position] if clusters else task
        delta = Fraction(b[task].passed, b[task].n) - Fraction(a[task].passed, a[task].n)
        sums[cluster] = sums.get(cluster, Fraction(0)) + delta
    return sign_flip_test(list(sums.values())).p_value

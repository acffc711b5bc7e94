"""Which candidate wins."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.selection import Candidate, Conduct, ProbeResults, methods

SEEN = st.builds(
    ProbeResults, st.integers(0, 3), st.sampled_from(Conduct), st.sampled_from(["a", "b", "c"])
)


def candidates(seen: list[ProbeResults]) -> list[Candidate]:
    return [Candidate("t", number, -1.0, one) for number, one in enumerate(seen)]


def chosen(name: str, among: list[Candidate]) -> int:
    return methods.get(name).choose(among).sample


def test_there_are_four() -> None:
    assert methods.names() == ["agreement", "examples", "first", "logprob"]


@given(st.lists(SEEN, min_size=1))
def test_first_is_the_first(seen: list[ProbeResults]) -> None:
    assert chosen("first", candidates(seen)) == 0


@given(st.lists(SEEN, min_size=1))
def test_examples_takes_the_first_of_those_with_most(seen: list[ProbeResults]) -> None:
    rights = [one.right for one in seen]
    assert chosen("examples", candidates(seen)) == rights.index(max(rights))


@given(st.lists(SEEN, min_size=1))
def test_agreement_takes_the_first_of_the_largest_group(seen: list[ProbeResults]) -> None:
    winner = seen[chosen("agreement", candidates(seen))]
    sizes = Counter((one.conduct, one.behaviour) for one in seen)
    best = max(one.conduct for one in seen)
    assert winner.conduct == best
    largest = max(size for (conduct, _), size in sizes.items() if conduct == best)
    equals = [
        (one.conduct, one.behaviour)
        for one in seen
        if one.conduct == best and sizes[one.conduct, one.behaviour] == largest
    ]
    assert (winner.conduct, winner.behaviour) == equals[0]
    assert seen.index(winner) <= chosen("agreement", candidates(seen))


def test_many_crashes_lose_against_one_answer() -> None:
    seen = [ProbeResults(0, Conduct.FAILS, "x")] * 3 + [ProbeResults(0, Conduct.ANSWERS, "y")]
    assert chosen("agreement", candidates(seen)) == 3
    assert chosen("agreement", candidates(seen[:3])) == 0


@given(st.lists(st.floats(max_value=0.0, allow_nan=False), min_size=1))
def test_logprob_takes_the_first_of_the_likeliest(told: list[float]) -> None:
    among = [Candidate("t", number, logprob) for number, logprob in enumerate(told)]
    assert chosen("logprob", among) == told.index(max(told))


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_log_probability_is_named(missing: float | None) -> None:
    among = [Candidate("t", 0, -1.0), Candidate("t", 1, missing)]
    with pytest.raises(UsageError, match="t: sample 1 has.*gguf"):
        chosen("logprob", among)

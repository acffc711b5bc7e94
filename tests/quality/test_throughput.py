"""Rates and spreads, and prompts of a wanted length."""

from __future__ import annotations

import itertools
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.quality.bench.prompts import prompt_of, texts
from assay.quality.bench.throughput import Round, Timed, decode_rate, figures, rate, spread
from assay.types import Prompt

durations = st.floats(1e-6, 1e6)
counts = st.integers(0, 10**9)


@given(counts, durations)
def test_a_rate_is_tokens_over_seconds(tokens: int, seconds: float) -> None:
    found = rate(tokens, seconds)
    assert found >= 0
    assert found * seconds == pytest.approx(tokens)


@given(counts, durations, durations)
def test_decoding_begins_after_the_first_token(tokens: int, first: float, rest: float) -> None:
    found = decode_rate(tokens, first + rest, first)
    if tokens < 2 or first + rest <= first:
        assert found is None
    else:
        assert found is not None
        assert found * (first + rest - first) == pytest.approx(tokens - 1)
    assert decode_rate(tokens, first, first) is None


@given(st.lists(durations, min_size=1, max_size=30))
def test_a_spread_is_of_the_values(values: list[float]) -> None:
    found = spread(values)
    assert (found.min, found.max) == (min(values), max(values))
    assert found.median == pytest.approx(statistics.median(values))
    assert found.min <= found.q1 <= found.median <= found.q3 <= found.max


def one(seconds: float, tokens: int, sequences: int = 1, prompt: int = 64, early: int = 0) -> Timed:
    return Timed(sequences, seconds, prompt, tokens, early)


def test_figures_of_rounds() -> None:
    rounds = [
        Round(one(0.5, 1), one(2.5, 101), (one(3.0, 90), one(4.0, 200, 2, early=1))),
        Round(one(0.4, 1), one(0.9, 1), (one(1.0, 90), one(8.0, 200, 2))),
        Round(one(0.8, 1), one(4.8, 101), (one(2.0, 90), one(2.0, 100, 2, early=1))),
    ]
    found = figures(rounds)
    assert found.time_to_first_token_ms.median == pytest.approx(500)
    assert found.prefill_tokens_per_second is not None
    assert found.prefill_tokens_per_second.median == pytest.approx(64 / 0.5)
    # The second round made one token: it says nothing of decoding.
    assert found.decode_tokens_per_second is not None
    assert found.decode_tokens_per_second.median == pytest.approx((100 / 2 + 100 / 4) / 2)
    alone, two = found.batches
    assert alone.tokens_per_second is not None
    assert two.tokens_per_second is not None
    assert (alone.sequences, two.sequences) == (1, 2)
    assert alone.tokens_per_second.median == pytest.approx(45)
    assert two.tokens_per_second.max == pytest.approx(50)
    assert (two.tokens_generated, two.ended_early) == (500, 2)
    assert figures(rounds, loads_every_call=True).prefill_tokens_per_second is None


def test_what_is_not_told_is_no_figure() -> None:
    """A server that counts no tokens."""
    silent = Round(one(0.5, 0, prompt=0), one(2.0, 0, prompt=0), (one(2.0, 0, prompt=0),))
    found = figures([silent])
    assert found.prefill_tokens_per_second is None
    assert found.decode_tokens_per_second is None
    assert found.batches[0].tokens_per_second is None
    assert found.time_to_first_token_ms.median == pytest.approx(500)


def letters(prompt: Prompt) -> int:
    """A tokenizer of single characters."""
    return len(prompt.text) + sum(len(message.content) for message in prompt.messages)


def syllables(prompt: Prompt) -> int:
    """One of pieces of at most three characters, which do not cross words."""
    return sum(-(-len(word) // 3) for word in prompt.text.split(" "))


@pytest.mark.parametrize(("count", "longest_word"), [(letters, 12), (syllables, 4)])
@pytest.mark.parametrize("wanted", [16, 64, 128, 500, 4000])
def test_prompts_have_the_wanted_length(count: object, longest_word: int, wanted: int) -> None:
    for text in itertools.islice(texts(0), 20):
        length = count(prompt_of(text, wanted, "text", count))  # type: ignore[operator, arg-type]
        assert wanted - longest_word <= length <= wanted


def test_too_short_a_prompt_is_one_word() -> None:
    prompt = prompt_of(next(texts(0)), 1, "chat", letters)
    assert prompt.messages[0].content.endswith(".")
    assert " " not in prompt.messages[0].content.rpartition("\n")[2]


def test_prompts_begin_differently_and_are_the_same_again() -> None:
    def some(seed: int) -> list[str]:
        made = (prompt_of(text, 40, "text", lambda _: None) for text in texts(seed))
        return [prompt.text for prompt in itertools.islice(made, 300)]

    assert len({text.split(" ")[0] for text in some(0)}) == 300
    assert some(0) == some(0)
    assert not set(some(0)) & set(some(1))
    assert all(len(text.split(" ")) == 30 for text in some(0))

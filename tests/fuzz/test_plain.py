"""Whatever a program sends is a value or is refused, soon and without much memory."""

from __future__ import annotations

import json
import random
import resource
import time
from typing import Any

import pytest

from assay.data import plain
from assay.data.digests import digest

pytestmark = pytest.mark.fuzz
SECONDS = 15.0
LARGEST_MB = 200
SLOWEST_S = 2.0
LONGEST = 1_000_000  # characters of a message: a longer one may take longer
TEXTS = [
    "", "0", "-1", "ff", "1/3", "1/0", "1e9999999", "1E-9999999", "NaN", "sNaN", "Infinity", "0x1f",
    "int", "0" * 64, "9" * 20_000, "\u03b1" * 5000, "_", " 1 ", "1_0", "\ud800",
]  # fmt: skip
NUMBERS = [
    0, -0.0, 1, True, -1, 2**53 + 1, 2**61 - 1, 10**400, 1e308, float("nan"), float("inf"), 10**12,
]  # fmt: skip
# Equal to themselves alone, or compared in a way of their own.
IDENTICAL = {"opaque", "iterator", "values", "type", "large", "array"}
TAGS = [*plain._DECODERS, "no such tag"]


def sent(source: random.Random, depth: int) -> Any:
    """Return JSON that is close enough to encoded data to get far into the decoder."""
    choice = source.random()
    if depth == 0 or choice < 0.25:
        return source.choice([None, source.choice(TEXTS), source.choice(NUMBERS)])
    if choice < 0.5:
        return [sent(source, depth - 1)] * source.choice([0, 1, 2, 3, 50 if depth == 1 else 4])
    if choice < 0.55:
        return {source.choice(TAGS): sent(source, depth - 1) for _ in range(2)}
    return {source.choice(TAGS): content(source, depth - 1)}


def content(source: random.Random, depth: int) -> Any:
    kind = source.randrange(4)
    if kind == 0:
        return source.choice(TEXTS)
    if kind == 1:
        return [source.choice(NUMBERS) for _ in range(source.randrange(4))]
    if kind == 2:
        return [[sent(source, depth), sent(source, depth)] for _ in range(source.randrange(3))]
    return sent(source, depth)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.no_cover
def test_no_message_breaks_the_decoder() -> None:
    seed = random.randrange(1 << 32)
    source = random.Random(seed)
    end = time.monotonic() + SECONDS
    values = refused = 0
    while time.monotonic() < end:
        text = json.dumps(sent(source, 4))
        if len(text) > LONGEST:
            continue
        data, before, started = json.loads(text), peak_mb(), time.thread_time()
        try:
            value = plain.decode(data)
        except (ValueError, RecursionError):
            refused += 1
        else:
            values += 1
            assert plain.Large("no digest") != value, (seed, text[:500])
            json.dumps(plain.encode(value))
        assert peak_mb() - before < LARGEST_MB, (seed, text[:500])
        assert time.thread_time() - started < SLOWEST_S, (seed, text[:500])
    assert values > 100, seed
    assert refused > 100, seed


def test_what_was_encoded_is_decoded() -> None:
    """A value that came through once comes through again, and equals itself but for NaNs."""
    seed = random.randrange(1 << 32)
    source = random.Random(seed)
    end = time.monotonic() + SECONDS / 3
    through = 0
    while time.monotonic() < end:
        try:
            value = plain.decode(json.loads(json.dumps(sent(source, 3))))
        except (ValueError, RecursionError):
            continue
        first = plain.encode(value)
        data = json.loads(json.dumps(first))
        if any(f"'{tag}': " in str(data) for tag in IDENTICAL):
            continue
        again, twin = plain.decode(data), plain.decode(json.loads(json.dumps(first)))
        try:
            equal = bool(again == twin)
        except (TypeError, ArithmeticError):  # a signalling NaN
            continue
        assert equal == (digest(again) == digest(twin)), (seed, data)
        through += 1
    assert through > 100, seed

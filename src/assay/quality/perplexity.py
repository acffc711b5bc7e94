"""Measure how well a model predicts a text, token by token (perplexity).

A text of N tokens is read through windows of up to ``window`` tokens. Each window predicts the
tokens that no window before it predicted: ``stride`` of them, except in the first window. The cross
entropy is the mean of -ln p over all predicted tokens, which are all but the first of the text.
Perplexity is e to the power of it. Bits per byte divide the same sum by the bytes of these tokens,
which makes models with different vocabularies comparable.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay import benchmarks
from assay.data.reading import FileReader
from assay.datasets import catalogue as data
from assay.errors import UsageError
from assay.progress import Reporter, Silent

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.models.scoring import Scorer

WIKITEXT = "wikitext-2"
BUILT_IN = "built-in"
WINDOW = 1024
SILENT = Silent()


@dataclass(frozen=True, slots=True)
class LoadedText:
    """A text, or its first lines. The digest covers exactly what is here."""

    name: str
    content: str
    sha256: str


def load_text(
    name: str,
    limit_bytes: int = 0,
    announce: Callable[[str], None] = lambda _: None,
    data_dir: Path | None = None,
) -> LoadedText:
    """Return the pinned text of this name, or the file. A limit cuts it to whole lines."""
    if limit_bytes < 0:
        raise UsageError(f"--bytes: {limit_bytes} is negative. Give 0 or more.")
    names = [BUILT_IN]
    names += [known for known in data.data_files.names() if data.data_files.get(known).is_text]
    if name == BUILT_IN:  # code and its descriptions
        content = "\n".join(problem.reference for problem in benchmarks.load("mini").problems)
    elif name in names:
        content = data.text(data.data_files.get(name), announce, data_dir)
    else:
        advice = f"Give a UTF-8 text file, or one of {', '.join(names)}"
        content = FileReader(UsageError, advice, 1 << 30).read_text(Path(name))
    if limit_bytes:
        content = _first_lines(content, limit_bytes)
    if not content.strip():
        raise UsageError(f"{name}: has no text to measure. Give another file, or more --bytes.")
    return LoadedText(name, content, hashlib.sha256(content.encode()).hexdigest())


def _first_lines(content: str, limit: int) -> str:
    """Return whole lines up to the limit. A longer first line is cut at a character."""
    cut = content.encode()[:limit].decode(errors="ignore")
    whole = cut[: cut.rfind("\n") + 1]
    return cut if len(cut) == len(content) or not whole else whole


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens ``start`` to ``end``, of which those from ``predicted_from`` on are predicted."""

    start: int
    predicted_from: int
    end: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.end - self.start, self.end - self.predicted_from


@dataclass(frozen=True, slots=True)
class Perplexity:
    """The perplexity of one text.

    The standard error is that of the cross entropy, with independent windows.
    """

    cross_entropy: float
    perplexity: float
    bits_per_byte: float
    standard_error: float | None  # none of a single window
    low: float | None  # of the perplexity, 95 %
    high: float | None
    tokens: int
    bytes: int
    window: int
    stride: int


def windows(tokens: int, window: int, stride: int) -> Iterator[Window]:
    """Yield windows that predict every token but the first once, with the longest context."""
    if not 1 <= stride < window:
        raise UsageError(
            f"--stride: {stride} is out of range. Give 1 to {window - 1}, below the window."
        )
    start, predicted_from = 0, 1
    while predicted_from < tokens:
        end = min(start + window, tokens)
        yield Window(start, predicted_from, end)
        start, predicted_from = start + stride, end


def from_cross_entropy(nats: float) -> float:
    """Return perplexity: the number of equally likely tokens with the same uncertainty."""
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf


def bits_per_byte(nats: float, text_bytes: int) -> float:
    """Return bits per byte from a text's total loss."""
    if text_bytes < 1:
        raise ValueError("the text is empty")
    return nats / math.log(2) / text_bytes


def summary(
    losses: Sequence[float], counts: Sequence[int], text_bytes: int, window: int, stride: int
) -> Perplexity:
    """Compute perplexity from each window's sum of -ln p and its number of tokens."""
    tokens = sum(counts)
    entropy = math.fsum(losses) / tokens
    error = _standard_error(losses, counts, entropy)
    return Perplexity(
        cross_entropy=entropy,
        perplexity=from_cross_entropy(entropy),
        bits_per_byte=bits_per_byte(math.fsum(losses), text_bytes),
        standard_error=error,
        low=None if error is None else from_cross_entropy(entropy - 1.96 * error),
        high=None if error is None else from_cross_entropy(entropy + 1.96 * error),
        tokens=tokens,
        bytes=text_bytes,
        window=window,
        stride=stride,
    )


def measure(
    scorer: Scorer,
    text: str,
    window: int = 0,
    stride: int = 0,
    reporter: Reporter = SILENT,
) -> Perplexity:
    """Measure a text. The reporter gets the number of tokens predicted so far."""
    if window > scorer.context:
        raise UsageError(
            f"--window: {window} exceeds the model's context. Give at most {scorer.context}."
        )
    window = window or min(WINDOW, scorer.context)
    stride = stride or window // 2
    tokens = scorer.tokenize(text)
    plan = list(windows(len(tokens.ids), window, stride))
    if not plan:
        raise UsageError("--dataset: the text is too short. Give one with at least two tokens.")
    losses: list[float] = []
    counts: list[int] = []
    for group in _group_alike(plan, scorer.at_once):
        count = group[0].end - group[0].predicted_from
        sequences = [tokens.ids[one.start : one.end] for one in group]
        for logprobs in scorer.logprobs(sequences, count):
            losses.append(-math.fsum(logprobs))
            counts.append(len(logprobs))
        reporter.preparing("perplexity", sum(counts), len(tokens.ids) - 1)
    return summary(losses, counts, len(text.encode()) - tokens.first_bytes, window, stride)


def _group_alike(plan: Sequence[Window], most: int) -> Iterator[list[Window]]:
    """Yield windows that can be computed together: same length, same number of predictions."""
    group: list[Window] = []
    for one in plan:
        if group and (len(group) == most or group[0].shape != one.shape):
            yield group
            group = []
        group.append(one)
    yield group


def _standard_error(losses: Sequence[float], counts: Sequence[int], mean: float) -> float | None:
    """Return the standard error of a ratio of sums. Tokens of one window are dependent."""
    if len(losses) < 2:
        return None
    residuals = [loss - mean * count for loss, count in zip(losses, counts, strict=True)]
    variance = math.fsum(r * r for r in residuals) * len(losses) / (len(losses) - 1)
    return math.sqrt(variance) / sum(counts)

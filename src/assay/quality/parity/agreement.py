"""Compute how similar two models' logits are. Arrays have one row per token. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.errors import UsageError
from assay.runs.about import Agreement

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class Rows:
    """The similarity by position, for one prompt or several in sequence."""

    cosine: NDArray[np.float64]
    max_abs: NDArray[np.float64]
    same_top: NDArray[np.bool_]
    kl: NDArray[np.float64]


def likeness(reference: ArrayLike, candidate: ArrayLike) -> Agreement:
    """Return the similarity of one prompt's logits."""
    return agreement([compare_rows(reference, candidate)])


def compare_rows(reference: ArrayLike, candidate: ArrayLike) -> Rows:
    """Compare row by row. Only the shared part counts if vocabularies are padded differently."""
    import numpy as np

    one, other = np.atleast_2d(np.asarray(reference)), np.atleast_2d(np.asarray(candidate))
    if len(one) != len(other) or not one.size:
        raise UsageError(f"{len(one)} and {len(other)} rows of logits cannot be compared")
    width = min(one.shape[1], other.shape[1])
    one, other = (rows[:, :width].astype(np.float64) for rows in (one, other))
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    cosine = (one * other).sum(axis=1) / np.where(lengths == 0, 1.0, lengths)
    log_one, log_other = _log_softmax(one), _log_softmax(other)
    kl = (np.exp(log_one) * (log_one - log_other)).sum(axis=1)
    return Rows(
        cosine=cosine,
        max_abs=np.abs(one - other).max(axis=1),
        same_top=one.argmax(axis=1) == other.argmax(axis=1),
        kl=np.maximum(kl, 0.0),  # rounding makes it -1e-17
    )


def agreement(rows: Sequence[Rows]) -> Agreement:
    """Summarise all rows of all prompts. A number that is not finite makes the figures so."""
    import numpy as np

    cosine = np.concatenate([one.cosine for one in rows])
    kl = np.concatenate([one.kl for one in rows])
    return Agreement(
        positions=len(cosine),
        cosine_mean=float(cosine.mean()),
        cosine_min=float(cosine.min()),
        max_abs_difference=float(np.concatenate([one.max_abs for one in rows]).max()),
        top1_agreement=float(np.concatenate([one.same_top for one in rows]).mean()),
        kl_mean=float(kl.mean()),
        kl_max=float(kl.max()),
    )


def kl_by_position(rows: Sequence[Rows]) -> list[float]:
    """Return the mean over prompts at each position, up to the longest prompt's end."""
    longest = max(len(one.kl) for one in rows)
    return [
        sum(there) / len(there)
        for position in range(longest)
        if (there := [float(one.kl[position]) for one in rows if len(one.kl) > position])
    ]


def first_difference(one: Sequence[object], other: Sequence[object]) -> int | None:
    """Return where two sequences first differ, or None if they are equal."""
    for place, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return place
    return None if len(one) == len(other) else min(len(one), len(other))


def _log_softmax(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    shifted = rows - rows.max(axis=1, keepdims=True)
    logarithms: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return logarithms

"""Reward completions in the shape of verl's ``compute_score``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.reward.rewards import Reward, Score, require_equal_lengths, require_values
from assay.reward.tests import read_task


@dataclass(frozen=True, kw_only=True)
class VerlReward(Reward):
    """A function for verl's ``custom_reward_function``; ``batch`` is for its batch manager.

    ``ground_truth`` is a task id of the benchmark ``data_source``, or JSON with own tests. verl has
    no way to leave a completion out, so one that could not be judged raises SandboxError unless
    ``invalid`` is its reward.
    """

    invalid: float | None = None

    def __call__(
        self,
        data_source: str,
        solution_str: str,
        ground_truth: object,
        extra_info: dict[str, Any] | None = None,
        **_settings: Any,
    ) -> dict[str, float]:
        """Return the score of a completion, with what verl logs next to it."""
        return self.batch([data_source], [solution_str], [ground_truth], [extra_info])[0]

    def batch(
        self,
        data_sources: Sequence[str],
        solution_strs: Sequence[str],
        ground_truths: Sequence[object],
        extra_infos: Sequence[dict[str, Any] | None] | None = None,  # noqa: ARG002 - verl's
        **_settings: Any,
    ) -> list[dict[str, float]]:
        """Return the score of each completion, in their order."""
        require_equal_lengths(
            data_sources=data_sources, solution_strs=solution_strs, ground_truths=ground_truths
        )
        tests = [
            read_task(truth, self.benchmark or source)
            for source, truth in zip(data_sources, ground_truths, strict=True)
        ]
        scores = self.score(tests, list(solution_strs))
        values = require_values(scores, self.invalid)
        return [_entry(value, score) for value, score in zip(values, scores, strict=True)]


def _entry(value: float, score: Score) -> dict[str, float]:
    """Return the same keys for every completion: verl makes a list of each."""
    return {
        "score": value,
        "acc": float(score.verdict.status == "pass"),
        "invalid": float(score.value is None),
    }

"""Reward completions in the shape of OpenRLHF's ``reward_func``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.data.arguments import show
from assay.errors import UsageError
from assay.reward.rewards import Reward, require_equal_lengths, require_values


@dataclass(frozen=True, kw_only=True)
class OpenRlhfReward(Reward):
    """A function for the file that OpenRLHF's ``--reward.remote_url`` names.

    A label is a task id of ``benchmark``, or JSON with a task or own tests. OpenRLHF has no way to
    leave a completion out, so one that could not be judged raises SandboxError unless ``invalid``
    is its reward.
    """

    invalid: float | None = None

    def __call__(
        self,
        queries: Sequence[str],
        prompts: Sequence[str],
        labels: Sequence[object],
        **_settings: Any,
    ) -> dict[str, Any]:
        """Return tensors of rewards, and of what is logged next to them."""
        import torch

        require_equal_lengths(queries=queries, prompts=prompts, labels=labels)
        texts = [response_of(query, prompt) for query, prompt in zip(queries, prompts, strict=True)]
        scores = self.score(labels, texts)
        rewards = torch.tensor(require_values(scores, self.invalid), dtype=torch.float)
        passed = [float(score.verdict.status == "pass") for score in scores]
        invalid = [float(score.value is None) for score in scores]
        return {
            "rewards": rewards,
            "scores": rewards,
            "extra_logs": {"passed": torch.tensor(passed), "invalid": torch.tensor(invalid)},
        }


def response_of(query: str, prompt: str) -> str:
    """Return what comes after the prompt.

    The query was decoded from tokens, so its white space may differ from the prompt's.
    """
    if not isinstance(query, str) or not isinstance(prompt, str):
        raise UsageError(f"queries: {show(query)} or its prompt is not a text. Give texts.")
    if query.startswith(prompt):
        return query[len(prompt) :]
    position = 0
    for character in filter(lambda c: not c.isspace(), prompt):
        while position < len(query) and query[position].isspace():
            position += 1
        if query[position : position + 1] != character:
            raise UsageError(
                "query: does not begin with its prompt. Raise the maximum length of prompts."
            )
        position += 1
    return query[position:]

"""Reward completions in the shape of TRL: GRPO, RLOO and online DPO call such a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.data.arguments import show
from assay.errors import UsageError
from assay.reward.rewards import Reward, Score, require_equal_lengths

Message = Mapping[str, Any]
COLUMNS = ("tests", "task_id", "benchmark")  # of a dataset, that say how to judge


@dataclass(frozen=True, kw_only=True)
class TrlReward(Reward):
    """A reward function for ``GRPOTrainer(reward_funcs=...)``.

    The dataset has a column ``tests``, or ``task_id`` and perhaps ``benchmark``. A completion that
    could not be judged gets None, which TRL leaves out of the group.
    """

    @property
    def __name__(self) -> str:
        """Return the name under which TRL logs the reward."""
        return "assay"

    def __call__(
        self,
        prompts: Sequence[object],
        completions: Sequence[str] | Sequence[Sequence[Message]],
        **columns: Any,
    ) -> list[float | None]:
        """Return the reward of each completion, in their order."""
        given = {name: columns.get(name) for name in COLUMNS}
        present = {name: column for name, column in given.items() if column is not None}
        require_equal_lengths(prompts=prompts, completions=completions, **present)
        texts = [text_of(completion) for completion in completions]
        conversational = bool(completions) and not isinstance(completions[0], str)
        tests = read_columns(columns, len(prompts))
        scores = self.score(tests, texts, "chat" if conversational else None)
        _log(scores, columns.get("log_metric"))
        return [score.value for score in scores]


def text_of(completion: str | Sequence[Message]) -> str:
    """Return the text of a completion, or the last answer of a conversational one."""
    if isinstance(completion, str):
        return completion
    try:
        answers = [message for message in completion if message.get("role") == "assistant"]
        content = answers[-1].get("content") if answers else ""
        if isinstance(content, list):  # parts, as multimodal models have
            return "".join(str(part.get("text") or "") for part in content)
    except (AttributeError, TypeError) as error:
        raise UsageError(
            f"completions: {show(completion)} is neither a text nor messages. Give one of them."
        ) from error
    return str(content or "")


def read_columns(columns: Mapping[str, Any], count: int) -> list[object]:
    """Return what the columns of a dataset say about the tests of each completion."""
    tests, ids, names = (columns.get(name) for name in COLUMNS)
    if tests is None and ids is None:
        raise UsageError("dataset: no column tests or task_id. Add one of them.")
    rows = []
    for number in range(count):
        if tests is not None and tests[number] is not None:
            rows.append(tests[number])
        else:
            task_id = ids[number] if ids is not None else None
            name = names[number] if names is not None else None
            rows.append({"task_id": task_id, "benchmark": name})
    return rows


def _log(scores: Sequence[Score], log_metric: Callable[[str, float], None] | None) -> None:
    """Log the share of completions that pass all tests, and the number of those not judged."""
    judged = [score for score in scores if score.value is not None]
    if log_metric is None:
        return
    if judged:
        passed = sum(score.verdict.status == "pass" for score in judged)
        log_metric("assay/passed", passed / len(judged))
    log_metric("assay/invalid", float(len(scores) - len(judged)))

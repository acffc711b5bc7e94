"""Reward completions in the shapes that trainers call: TRL, verl and OpenRLHF."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.data.arguments import show
from assay.errors import UsageError
from assay.reward.judging import Score
from assay.reward.rewards import Reward, require_equal_lengths, require_values
from assay.reward.tests import read_task

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
        named = {name: columns.get(name) for name in COLUMNS}
        present = {name: column for name, column in named.items() if column is not None}
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
        # The same keys for every completion: verl makes a list of each.
        return [
            {
                "score": value,
                "acc": float(score.verdict.status == "pass"),
                "invalid": float(score.value is None),
            }
            for value, score in zip(values, scores, strict=True)
        ]


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

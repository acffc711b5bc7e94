"""Turn completions into rewards. The shapes that trainers call are built on this."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.data.arguments import check_fields, show
from assay.errors import SandboxError, UsageError
from assay.reward.judging import CompletionJudge, ProgramJudge, Score
from assay.reward.sharing import PerProcess
from assay.reward.tests import BenchmarkTask, read_task
from assay.types import Limits, Problem, PromptForm


@dataclass(frozen=True, kw_only=True)
class Reward:
    """A reward of completions whose programs pass their tests.

    The sandbox starts with the first completion and stays warm. A process that gets a reward by
    fork or pickle starts its own. Threads share one, and their calls are judged in batches.
    """

    benchmark: str = ""  # of task ids that come without one
    partial: bool = False  # reward the share of tests that pass, not only all of them
    format_share: float = 0.0  # part of the reward for a program that defines its entry point
    form: PromptForm = "chat"  # of completions that are plain text; "text" continues the prompt
    allow_shared: bool = False  # tests that run in the program's interpreter can be forged
    retries: int = 1  # of programs that the machine failed to judge
    judge: ProgramJudge | Callable[[], ProgramJudge] | None = None  # instead of a sandbox here
    workers: int = 0  # 0: one per core
    sandbox: str = "process"
    sandbox_tier: str = "auto"
    python: str = ""  # version or path of the Python that judges; none: 3.11, else this one
    limits: Limits | None = None  # None: those of the benchmark
    data_dir: str | Path | None = None
    _judge: PerProcess[CompletionJudge] = field(
        default_factory=PerProcess, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.format_share < 1:
            raise UsageError("format_share: must be 0 or more and less than 1.")

    def score(
        self, tests: Sequence[object], completions: Sequence[str], form: PromptForm | None = None
    ) -> list[Score]:
        """Return the score of each completion, in their order.

        ``tests`` has a task id, or an object or its JSON with a task or own tests, for each.
        """
        require_equal_lengths(tests=tests, completions=completions)
        for text in completions:
            if not isinstance(text, str):
                raise UsageError(f"completions: {show(text)} is not a text. Give texts.")
        judge = self._judge.get(lambda: CompletionJudge(self))
        tasks = [
            judge.task(
                one if isinstance(one, BenchmarkTask | Problem) else read_task(one, self.benchmark)
            )
            for one in tests
        ]
        return list(judge.score(tasks, completions, form or self.form))

    def close(self) -> None:
        """Stop this process's sandbox. The next call starts another one."""
        if judge := self._judge.take():
            judge.close()


def require_equal_lengths(**columns: Sequence[object]) -> None:
    """Raise UsageError unless all columns of a batch are series of the same length."""
    for name, column in columns.items():
        is_series = hasattr(column, "__len__") and hasattr(column, "__getitem__")
        if isinstance(column, str | bytes | Mapping) or not is_series:
            raise UsageError(f"{name}: {show(column)} is not a list. Give one item per completion.")
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{len(column)} {name}" for name, column in columns.items())
        raise UsageError(f"batch: has {lengths}. Give one of each per completion.")


def require_values(scores: Sequence[Score], invalid: float | None) -> list[float]:
    """Return the rewards for a trainer that needs a number for every completion.

    Raise SandboxError for one that could not be judged, unless ``invalid`` is its reward.
    """
    values = []
    for score in scores:
        value = invalid if score.value is None else score.value
        if value is None or math.isnan(value):
            verdict = score.verdict
            raise SandboxError(
                f"{verdict.task_id}: no reward, because the machine could not judge it "
                f"({verdict.reason}: {verdict.detail}). Fix that, or set invalid to a number."
            )
        values.append(value)
    return values

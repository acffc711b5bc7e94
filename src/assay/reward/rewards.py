"""Turn completions into rewards. The shapes that trainers call are built on this."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.data.arguments import check_fields, show
from assay.errors import SandboxError, UsageError
from assay.reward.benches import ProgramBench, ProgramJudge
from assay.reward.judging import CompletionJudge, JudgedCompletion, JudgeSettings, RewardAnswer
from assay.reward.sharing import PerProcess
from assay.reward.tests import BenchmarkTask, read_task
from assay.types import Limits, Problem, PromptForm, Verdict

# Reasons of completions that have no program which compiles and defines the entry point.
WITHOUT_PROGRAM = frozenset(("no-code", "unparsable", "extraction", "too-long", "syntax"))


@dataclass(frozen=True, slots=True)
class Score:
    """The reward of one completion, from 0 to 1, and the verdict that it follows from."""

    value: float | None  # None: the machine could not judge it
    verdict: Verdict
    passed: int  # tests
    total: int


@dataclass(frozen=True, kw_only=True)
class Reward:
    """Reward completions whose programs pass their tests.

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
        judge = self._judge.get(self._open)
        answers = [
            RewardAnswer(judge.task(self._read(given)), text, form or self.form)
            for given, text in zip(tests, completions, strict=True)
        ]
        return [self._score(judged) for judged in judge.judge(answers)]

    def close(self) -> None:
        """Stop this process's sandbox. The next call starts another one."""
        if judge := self._judge.take():
            judge.close()

    def _read(self, given: object) -> BenchmarkTask | Problem:
        if isinstance(given, BenchmarkTask | Problem):
            return given
        return read_task(given, self.benchmark)

    def _score(self, judged: JudgedCompletion) -> Score:
        value = reward_of(judged, partial=self.partial, format_share=self.format_share)
        return Score(value, judged.verdict, judged.passed, judged.total)

    def _open(self) -> CompletionJudge:
        settings = JudgeSettings(
            self.partial, self.allow_shared, self.retries, self.workers, self.sandbox,
            self.sandbox_tier, self.python, self.limits, self.data_dir,
        )  # fmt: skip
        given = self.judge
        if given is None:
            return CompletionJudge(settings)
        if hasattr(given, "judge"):
            return CompletionJudge(settings, ProgramBench(given))
        return CompletionJudge(settings, ProgramBench(given(), opened_here=True))


def require_equal_lengths(**columns: Sequence[object]) -> None:
    """Raise UsageError unless all columns of a batch are series of the same length."""
    for name, column in columns.items():
        is_series = hasattr(column, "__len__") and hasattr(column, "__getitem__")
        if isinstance(column, str | bytes | Mapping) or not is_series:
            raise UsageError(f"{name}: {show(column)} is not a list. Give one item per completion.")
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{len(column)} {name}" for name, column in columns.items())
        raise UsageError(f"batch: has {lengths}. Give one of each per completion.")


def reward_of(
    judged: JudgedCompletion, *, partial: bool, format_share: float = 0.0
) -> float | None:
    """Return the reward of a verdict, from 0 to 1, or None if the machine could not judge it."""
    verdict = judged.verdict
    if verdict.status == "invalid":
        return None
    if verdict.status == "pass":
        return 1.0
    # A program that fails although all its tests passed has done something else that is forbidden.
    some = partial and judged.passed < judged.total
    share = judged.passed / judged.total if some else 0.0
    has_program = verdict.reason not in WITHOUT_PROGRAM
    return format_share * has_program + (1 - format_share) * share


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

"""Judge programs or completions without a model: ``assay.judge`` and ``assay.Judge``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from assay import benchmarks
from assay.data.arguments import check_argument, checked
from assay.errors import UsageError
from assay.extract.workers import ExtractionRequest, Extractor
from assay.judging import references
from assay.judging.answers import judge_jobs
from assay.judging.attempts import judge_extracted
from assay.judging.job import JudgeTask, tasks_of
from assay.progress import Reporter, Silent
from assay.sandbox import open_sandbox
from assay.sandbox.environments.interpreters import for_extraction
from assay.types import Benchmark, Limits, Program, Verdict

Programs = Mapping[str, str] | Iterable[tuple[str, str]]
SILENT = Silent()
T = TypeVar("T", bound="AnyJudge")


@checked
def judge(
    programs: Programs,
    benchmark: str | Path | Benchmark,
    *,
    workers: int = 0,
    sandbox: str = "process",
    sandbox_tier: str = "auto",
    python: str = "",
    limits: Limits | None = None,
    data_dir: str | Path | None = None,
    reporter: Reporter = SILENT,
) -> list[Verdict]:
    """Judge programs and return their verdicts, in the order of the programs.

    ``programs`` are pairs of a task id and a whole program, or a mapping. A verdict's ``sample`` is
    the program's position. ``python`` is a version such as 3.12 or a path; by default, Python 3.11
    judges if it is installed, otherwise the running one. Use a ``Judge`` for more than one call: it
    keeps its sandbox warm.
    """
    with Judge(
        benchmark, workers=workers, sandbox=sandbox, sandbox_tier=sandbox_tier, python=python,
        limits=limits, data_dir=data_dir, reporter=reporter,
    ) as opened:  # fmt: skip
        return opened.judge(programs)


class AnyJudge(ABC):
    """A judge of one benchmark's programs, here or on another machine. Use it as a context."""

    @checked
    def judge(self, programs: Programs) -> list[Verdict]:
        """Return a verdict for every program, in the order of the programs."""
        return sorted(self.stream(programs), key=lambda verdict: verdict.sample)

    @abstractmethod
    def stream(self, programs: Programs) -> Iterator[Verdict]:
        """Yield verdicts as they come. ``sample`` is the program's position."""

    @abstractmethod
    def close(self) -> None:
        """Stop what was started."""

    def __enter__(self: T) -> T:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Judge(AnyJudge):
    """A sandbox for the programs of one benchmark that stays ready between calls.

    Reference solutions are checked on first use, once per machine. Use it as a context manager, or
    close it.
    """

    @checked
    def __init__(
        self,
        benchmark: str | Path | Benchmark,
        *,
        workers: int = 0,
        sandbox: str = "process",
        sandbox_tier: str = "auto",
        python: str = "",
        limits: Limits | None = None,
        data_dir: str | Path | None = None,
        reporter: Reporter = SILENT,
    ) -> None:
        if not isinstance(benchmark, Benchmark):
            folder = Path(data_dir) if data_dir else None
            benchmark = benchmarks.load(str(benchmark), reporter.note, folder)
        if limits:
            benchmark = replace(benchmark, limits=limits, time_rule=None)
        self._sandbox = open_sandbox(sandbox, workers, sandbox_tier, python)
        try:
            checked = references.check(benchmark, self._sandbox, reporter)
        except BaseException:
            self._sandbox.close()
            raise
        self.benchmark = checked.benchmark
        self.unscorable = checked.unscorable  # tasks whose reference fails here, and why
        self._tasks = tasks_of(self.benchmark)
        self._workers = workers
        self._extractor: Extractor | None = None

    @checked
    def stream(self, programs: Programs) -> Iterator[Verdict]:
        """Yield verdicts as they come. ``sample`` is the program's position."""
        pairs = enumerate(list_pairs(programs))
        jobs = [self._task(t).make_job(Program(code, "given"), n) for n, (t, code) in pairs]
        return judge_jobs(self._sandbox, jobs)

    @checked
    def judge_completions(self, completions: Programs) -> list[Verdict]:
        """Return a verdict for every answer of a chat model. Its program is extracted first."""
        pairs = [(self._task(task_id), text) for task_id, text in list_pairs(completions)]
        if self._extractor is None:
            interpreter = for_extraction(self._sandbox.capabilities(), self.benchmark.environment)
            self._extractor = Extractor(self._workers, interpreter=interpreter)
        requests = ((task, ExtractionRequest(text, task.problem, "chat")) for task, text in pairs)
        texts = list(self._extractor.in_order(requests))
        return judge_extracted(texts, lambda jobs: list(judge_jobs(self._sandbox, jobs)))

    def close(self) -> None:
        """Stop the sandbox and everything that runs in it."""
        if self._extractor is not None:
            self._extractor.close()
            self._extractor = None
        self._sandbox.close()

    def _task(self, task_id: str) -> JudgeTask:
        if task_id not in self._tasks:
            raise UsageError(
                f"{task_id}: is not a task of {self.benchmark.name}. Give one of its task ids."
            )
        return self._tasks[task_id]


def list_pairs(programs: Programs) -> list[tuple[str, str]]:
    """Return pairs of a task id and a text. Raise UsageError for anything else."""
    pairs = list(programs.items() if isinstance(programs, Mapping) else programs)
    check_argument("programs", pairs, list[tuple[str, str]], list_pairs)
    return pairs

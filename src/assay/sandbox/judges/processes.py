"""Share a sandbox's workers between judge processes."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from typing import TypeVar

from assay.sandbox import Sandbox, Stage
from assay.sandbox.environments.interpreters import Interpreter
from assay.sandbox.host.fork_servers import most_dozing
from assay.sandbox.judges.dispatch import JudgeDispatch, JudgeProcess
from assay.sandbox.judges.judge_messages import Opening
from assay.sandbox.judges.stages import JudgeStage, OutputsStage, each, split_job
from assay.types import Capabilities, Cases, Job, Tests, Verdict
from assay.work import FileRWLock
from assay.work.machine import allowed_cores

LEAST_CORES = 8  # fewer are shared: the kernel moves processes well enough between them
FEW = 4  # items per worker: fewer are judged sooner than processes start
C = TypeVar("C")
P = TypeVar("P")
R = TypeVar("R")


class JudgeProcesses:
    """A sandbox whose workers belong to several processes.

    This process hands items out, in batches, and takes answers. It judges short lists by itself,
    with the sandbox ``here``. The processes start when there is work, and stay until ``close``.
    """

    def __init__(
        self,
        here: Sandbox,
        tier: str,
        python: Interpreter,
        seed: str,
        alone: FileRWLock,
        workers: int,
        judges: int,
    ) -> None:
        self._here = here
        self._alone = alone
        dozing = max(1, most_dozing(workers) // judges)
        shares = [workers // judges + (number < workers % judges) for number in range(judges)]
        cores = split_cores(allowed_cores(), judges)
        self._openings = [
            Opening(tier, python, share, dozing, seed, *alone.descriptors, own)
            for share, own in zip(shares, cores, strict=True)
        ]
        self._workers = workers
        self._lock = threading.Lock()
        self._free: list[tuple[Opening, JudgeProcess | None]] = [(o, None) for o in self._openings]
        self._alive: set[JudgeProcess] = set()

    def capabilities(self) -> Capabilities:
        return self._here.capabilities()

    def judge(self, jobs: Iterable[Job]) -> Iterator[Verdict]:
        return self._run_jobs(JudgeStage(), jobs, self._here.judge)

    def outputs(self, jobs: Iterable[Job]) -> Iterator[tuple[Verdict, Cases | None]]:
        return self._run_jobs(OutputsStage(), jobs, self._here.outputs)

    def _run_jobs(
        self,
        stage: Stage[Tests, Job, R],
        jobs: Iterable[Job],
        run_here: Callable[[Iterable[Job]], Iterator[R]],
    ) -> Iterator[R]:
        dispatch = self._dispatch(
            stage, map(split_job, jobs), len(jobs) if isinstance(jobs, Sized) else None
        )
        yield from run_here(jobs) if dispatch is None else each(self._answers(dispatch))

    def run_stage(
        self,
        stage: Stage[C, P, R],
        items: Iterable[tuple[C, P] | None],
        answer: Callable[[Sequence[R]], None],
        count: int | None = None,
    ) -> None:
        dispatch = self._dispatch(stage, items, count)
        if dispatch is None:
            self._here.run_stage(stage, items, answer, count)
            return
        with contextlib.closing(self._answers(dispatch)) as batches:
            for batch in batches:
                answer(batch)

    def close(self) -> None:
        """End all judge processes and workers. A later call of ``judge`` starts new ones."""
        with self._lock:
            alive, self._alive = self._alive, set()
            self._free = [(opening, None) for opening, _ in self._free]
        for process in alive:
            process.shut_down()
        self._here.close()
        for process in alive:
            process.close()

    def _dispatch(
        self, stage: Stage[C, P, R], items: Iterable[tuple[C, P] | None], count: int | None
    ) -> JudgeDispatch[C, P, R] | None:
        """Take the free processes for a stage. Return None if this process does the work."""
        if count is not None and count <= FEW * self._workers:
            return None
        with self._lock:
            free, self._free = self._free, []
        if not free:  # another thread has a stage
            return None
        return JudgeDispatch(stage, items, free, self._start)

    def _answers(self, dispatch: JudgeDispatch[C, P, R]) -> Generator[list[R], None, None]:
        """Yield the answers of a stage. End its processes if the caller stops early."""
        finished = False
        try:
            yield from dispatch.answers()
            finished = True
        finally:
            held = dispatch.processes()
            if not finished:
                self._end([process for _, process in held if process])
            with self._lock:
                self._free += [(o, p if p in self._alive else None) for o, p in held]

    def _start(self, opening: Opening, earlier: JudgeProcess | None) -> JudgeProcess:
        """Return a new process in the place of one that ended."""
        if earlier:
            self._end([earlier])
        process = JudgeProcess(opening)
        with self._lock:
            self._alive.add(process)
        return process

    def _end(self, processes: list[JudgeProcess]) -> None:
        with self._lock:
            self._alive -= set(processes)
        for process in processes:
            process.shut_down()
        for process in processes:
            process.close()


def split_cores(cores: set[int], judges: int) -> list[tuple[int, ...]]:
    """Return the cores of each judge process; none if all may use all.

    A program's memory is in the caches of the core where its fork server runs. On 16 cores, 16
    workers that stay there judge 2,778 programs/s, and 2,279 if they move.
    """
    if len(cores) < LEAST_CORES:
        return [()] * judges
    ordered = sorted(cores)
    ends = [len(ordered) * number // judges for number in range(judges + 1)]
    return [tuple(ordered[first:last]) for first, last in itertools.pairwise(ends)]

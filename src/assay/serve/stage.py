"""Bring programs and completions to verdicts next to the sandbox's workers.

The stage runs for as long as the server does. Each answer has its JSON line, so that the server's
own process only hands out and passes on.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

from assay.extract.workers import ExtractionRequest, Extractor
from assay.judging import Attempts, Computation, JudgeTask, begin, decide
from assay.judging.wire import decode_verdict, encode_verdict
from assay.sandbox import PAUSE, Item, Sandbox
from assay.sandbox.environments.interpreters import for_extraction
from assay.types import Cases, Job, Limits, Program, PromptForm, Status, Verdict
from assay.work import run_in_background


class JudgeWork(NamedTuple):
    """One program on its way to a verdict."""

    number: int  # unique in the server
    kind: Literal["program", "completion"]
    text: str  # a program, or a completion to extract it from
    limits: Limits
    task_id: str = ""
    position: int = 0  # in the request
    name: str | None = None  # the client's
    form: PromptForm = "chat"
    truncated: bool = False  # the completion was cut off at the token limit
    with_program: bool = False  # return the program that was extracted
    rule: str = "given"  # of a program
    seed: str = ""
    alone: bool = False  # its tests measure time
    # For a program that has outputs instead of a verdict's line: a function that reads them here,
    # because the server's process must not take the time.
    read_outputs: Callable[[Cases | None], Any] | None = None


class JudgeAnswer(NamedTuple):
    """The outcome of one program: a verdict as a line of JSON, and what the server counts of it.

    A whole verdict would be slow to pickle: 50 µs instead of 10.
    """

    number: int
    status: Status
    reason: str
    cpu_s: float = 0.0
    line: bytes = b""
    program: str = ""  # that was extracted
    outputs: Any = None  # as the work's function read them

    def read_verdict(self) -> Verdict:
        """Return the verdict."""
        return decode_verdict(json.loads(self.line), "", 0)


WorkItem = Item[JudgeTask, JudgeWork]
Reply = Callable[[int, JudgeAnswer | None], None]


@dataclass(frozen=True, slots=True)
class ServeStage:
    """The stage that answers every program."""

    ahead: int  # completions that are taken before they are answered
    extractors: int  # processes that extract; 0: one per core

    def run(self, sandbox: Sandbox, items: Iterator[WorkItem | None], answer: Reply) -> None:
        interpreter = for_extraction(sandbox.capabilities())
        with Extractor(self.extractors, interpreter=interpreter) as extractor:
            _Flow(self.ahead, extractor, answer, sandbox).run(items)

    def give_up(self, context: JudgeTask, payload: JudgeWork, why: str) -> JudgeAnswer:  # noqa: ARG002
        return invalid_answer(payload, why)


def invalid_answer(work: JudgeWork, why: str) -> JudgeAnswer:
    """Return the answer for a program that the harness could not judge."""
    return make_answer(work, Verdict(work.task_id, work.position, "invalid", "sandbox-error", why))


def make_answer(
    work: JudgeWork, verdict: Verdict, cases: Cases | None = None, program: str = ""
) -> JudgeAnswer:
    """Return the answer to a program with this verdict and these outputs."""
    counted = work.number, verdict.status, verdict.reason, verdict.cpu_s
    if work.read_outputs is not None:
        return JudgeAnswer(*counted, encode_verdict(verdict), outputs=work.read_outputs(cases))
    line = encode_verdict(verdict, work.name, program if work.with_program else None, cases)
    return JudgeAnswer(*counted, line, program)


def make_task(task: JudgeTask, work: JudgeWork) -> JudgeTask:
    """Return the task with what the request says about it. Clients name their own tests."""
    problem = replace(task.problem, task_id=work.task_id)
    return replace(
        task, problem=problem, limits=work.limits, alone=task.alone or work.alone, unscorable=""
    )


@dataclass(slots=True)
class _Open:
    """A program that is not answered yet."""

    work: JudgeWork
    attempts: Attempts
    later: bool = False  # on the second way
    computation: Computation | None = None  # of its arguments, which is being executed


class _Flow:
    """The programs of a stage. The sample number of a job is the tag of its item.

    Programs go straight to the sandbox's workers. Completions, and answers whose arguments have to
    be computed, take a second way, with threads of their own, because their jobs are ready later:
    after extraction, after a first form failed, or after the computation. So no program waits for
    the extraction of another one.
    """

    def __init__(self, ahead: int, extractor: Extractor, reply: Reply, sandbox: Sandbox) -> None:
        self._extractor, self._reply, self._sandbox = extractor, reply, sandbox
        self._room = threading.Semaphore(ahead)  # on the second way
        self._ahead = ahead
        self._open: dict[int, _Open] = {}
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._texts: queue.SimpleQueue[WorkItem | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._failure: BaseException | None = None

    def run(self, items: Iterator[WorkItem | None]) -> None:
        """Answer all items. An error of the second way is raised at the end."""
        try:
            self._execute(self._programs(items))
            for _ in range(self._ahead):  # until the second way is empty
                self._room.acquire()
        finally:
            self._texts.put(None)
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        if self._failure is not None:
            raise self._failure

    def _execute(self, jobs: Iterator[Job]) -> None:
        for verdict, cases in self._sandbox.outputs(jobs):
            self._executed(verdict, cases)

    def _programs(self, items: Iterator[WorkItem | None]) -> Iterator[Job]:
        """Yield the jobs of programs. Put completions on their own way."""
        for item in items:
            if item is PAUSE:
                continue
            if self._failure is not None:
                raise self._failure
            tag, task, work = item
            if work.kind == "completion":
                self._enter_second_way(tag, _Open(work, Attempts(), later=True))
                self._texts.put(item)
                continue
            program = Program(work.text, work.rule)
            step = decide(make_task(task, work).make_job(program, tag, seed=work.seed))
            sample = _Open(work, Attempts(truncated=work.truncated, programs=(program,)))
            if isinstance(step, Computation):
                sample.later = True
                self._enter_second_way(tag, sample)
            self._open[tag] = sample
            if isinstance(step, Job):
                yield step
            else:
                self._go_on(sample, step)

    def _enter_second_way(self, tag: int, sample: _Open) -> None:
        self._room.acquire()
        self._open[tag] = sample
        if not self._threads:
            works: tuple[Callable[[], None], ...] = (
                self._extract,
                lambda: self._execute(iter(self._jobs.get, None)),
            )
            self._threads = [run_in_background(partial(self._attempt, work)) for work in works]

    def _attempt(self, work: Callable[[], None]) -> None:
        """Do the work of a thread. If it fails, give its items up, and end the stage soon."""
        try:
            work()
        except BaseException as error:
            self._failure = self._failure or error
            for tag, sample in list(self._open.items()):
                if sample.later:
                    self._close(tag, invalid_answer(sample.work, str(error)))

    def _extract(self) -> None:
        """Extract the programs of completions until the stage ends."""
        for item, extraction in self._extractor.stream(self._requests()):
            tag, task, work = item
            sample = self._open.get(tag)
            if sample is None:  # it was given up
                continue
            sample.attempts, first = begin(
                make_task(task, work), extraction, tag, seed=work.seed, truncated=work.truncated
            )
            if isinstance(first, Job):
                self._go_on(sample, decide(first))
            else:
                self._finish(sample, first, None)

    def _requests(self) -> Iterator[tuple[WorkItem, ExtractionRequest] | None]:
        while True:
            if self._texts.empty():
                yield PAUSE
            item = self._texts.get()
            if item is None:
                return
            work = item.payload
            yield item, ExtractionRequest(work.text, item.context.problem, work.form)

    def _go_on(self, sample: _Open, step: Verdict | Job | Computation) -> None:
        """Hand the next job of an item to the sandbox, unless its verdict is known."""
        if isinstance(step, Verdict):
            self._executed(step, None)
        elif isinstance(step, Computation):
            sample.computation = step
            self._jobs.put(step.job)
        else:
            self._jobs.put(step)

    def _executed(self, verdict: Verdict, cases: Cases | None) -> None:
        """Settle a verdict, or go on with an item that needs another execution."""
        sample = self._open.get(verdict.sample)
        if sample is None:  # it was given up
            return
        if sample.computation is not None:
            computation, sample.computation = sample.computation, None
            self._go_on(sample, computation.finish(verdict, cases))
            return
        step = sample.attempts.settle(verdict)
        if isinstance(step, Job):
            self._go_on(sample, decide(step))
        else:
            self._finish(sample, step, cases)

    def _finish(self, sample: _Open, verdict: Verdict, cases: Cases | None) -> None:
        work, programs = sample.work, sample.attempts.programs
        code = programs[-1].code if programs and work.kind == "completion" else ""
        answered = replace(verdict, sample=work.position)
        self._close(verdict.sample, make_answer(work, answered, cases, code))

    def _close(self, tag: int, answer: JudgeAnswer) -> None:
        """Answer an item once: the threads that end may give up the same one."""
        sample = self._open.pop(tag, None)
        if sample is not None:
            self._reply(tag, answer)
            if sample.later:
                self._room.release()

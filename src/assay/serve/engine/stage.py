"""Bring programs and completions to verdicts next to the sandbox's workers.

The stage runs for as long as the server does. Each answer has its JSON line, so that the server's
own process only hands out and passes on.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from assay.data.failures import explain_failure
from assay.extract.workers import Extraction, ExtractionRequest, Extractor
from assay.judging import Attempts, Computation, JudgeTask, begin, decide
from assay.sandbox import PAUSE, Item, Sandbox
from assay.sandbox.environments.interpreters import for_extraction
from assay.sandbox.remote.wire import encode_verdict
from assay.serve.engine.work import EndedRun, JudgeAnswer, JudgeWork
from assay.types import Cases, Job, Program, Verdict

WorkItem = Item[JudgeTask, JudgeWork]
Reply = Callable[[int, JudgeAnswer | None], None]
GROUP = "run"  # of the one call of ``run_inside``


@dataclass(frozen=True, slots=True)
class ServeStage:
    """Answer every program."""

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
    return _answer(work, Verdict(work.task_id, work.position, "invalid", "sandbox-error", why))


@dataclass(slots=True)
class _Open:
    """Hold a program that is not answered yet."""

    work: JudgeWork
    attempts: Attempts
    later: bool = False  # on the second way
    computation: Computation | None = None  # of its arguments, which is being executed


class _Flow:
    """Take items, extract programs if requested, and execute. A job's sample number is its tag.

    Programs go straight to the sandbox's workers. Completions, and answers whose arguments have to
    be computed, take a second way, with threads of their own, because their jobs are ready later:
    after extraction, after a first form failed, or after the computation.
    """

    def __init__(self, ahead: int, extractor: Extractor, reply: Reply, sandbox: Sandbox) -> None:
        self._extractor, self._reply, self._sandbox = extractor, reply, sandbox
        self._room = threading.Semaphore(ahead)
        self._ahead = ahead
        self._open: dict[int, _Open] = {}
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._texts: queue.SimpleQueue[WorkItem | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._later: dict[int, JudgeWork] = {}  # open items on the second way
        self._failure: BaseException | None = None

    def run(self, items: Iterator[WorkItem | None]) -> None:
        """Answer all items. An error of completions is raised at the end."""
        try:
            for verdict, cases in self._sandbox.outputs(self._programs(items)):
                self._executed(verdict, cases)
            for _ in range(self._ahead):  # until the second way is empty
                self._room.acquire()
        finally:
            self._texts.put(None)
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        if self._failure is not None:
            raise self._failure

    def _programs(self, items: Iterator[WorkItem | None]) -> Iterator[Job]:
        """Yield the jobs of programs. Put completions on their own way."""
        for item in items:
            if item is PAUSE:
                continue
            if self._failure is not None:
                raise self._failure
            work = item.payload
            if work.kind == "completion":
                self._enter_second_way(item)
                self._texts.put(item)
                continue
            program = Program(work.text, work.rule)
            found = decide(_job(item, program))
            attempts = Attempts(truncated=work.truncated, programs=(program,))
            self._open[item.tag] = _Open(work, attempts, later=isinstance(found, Computation))
            if isinstance(found, Job):
                yield found
                continue
            if isinstance(found, Computation):
                self._enter_second_way(item)
            self._go_on(item.tag, found)

    def _enter_second_way(self, item: WorkItem) -> None:
        self._room.acquire()
        self._later[item.tag] = item.payload
        if not self._threads:
            self._threads = [
                threading.Thread(target=self._attempt, args=(work,), daemon=True)
                for work in (self._extract, self._judge_completions)
            ]
            for thread in self._threads:
                thread.start()

    def _attempt(self, work: Callable[[], None]) -> None:
        """Do the work of a thread. If it fails, give its items up, and end the stage soon."""
        try:
            work()
        except BaseException as error:
            self._failure = self._failure or error
            while self._later:
                tag, lost = self._later.popitem()
                self._reply(tag, invalid_answer(lost, str(error)))
                self._room.release()

    def _judge_completions(self) -> None:
        for verdict, cases in self._sandbox.outputs(iter(self._jobs.get, None)):
            self._executed(verdict, cases)

    def _extract(self) -> None:
        """Extract the programs of completions until the stage ends."""
        for item, found in self._extractor.stream(self._requests()):
            self._extracted(item, found)

    def _requests(self) -> Iterator[tuple[WorkItem, ExtractionRequest] | None]:
        while True:
            if self._texts.empty():
                yield PAUSE
            item = self._texts.get()
            if item is None:
                return
            work = item.payload
            yield item, ExtractionRequest(work.text, item.context.problem, work.form)

    def _extracted(self, item: WorkItem, found: Extraction) -> None:
        work = item.payload
        attempts, first = begin(
            _task(item), found, item.tag, seed=work.seed, truncated=work.truncated
        )
        self._open[item.tag] = _Open(work, attempts, later=True)
        if isinstance(first, Job):
            self._go_on(item.tag, decide(first))
        else:
            self._finish(first, None)

    def _go_on(self, tag: int, found: Verdict | Job | Computation) -> None:
        """Hand the next job of an item to the sandbox, unless its verdict is known."""
        if isinstance(found, Verdict):
            self._executed(found, None)
        elif isinstance(found, Computation):
            self._open[tag].computation = found
            self._jobs.put(found.job)
        else:
            self._jobs.put(found)

    def _executed(self, verdict: Verdict, cases: Cases | None) -> None:
        """Settle a verdict, or go on with an item that needs another execution."""
        sample = self._open[verdict.sample]
        if sample.computation is not None:
            computation, sample.computation = sample.computation, None
            self._go_on(verdict.sample, computation.finish(verdict, cases))
            return
        found = sample.attempts.settle(verdict)
        if isinstance(found, Job):
            self._go_on(verdict.sample, decide(found))
        else:
            self._finish(found, cases)

    def _finish(self, verdict: Verdict, cases: Cases | None) -> None:
        tag = verdict.sample
        sample = self._open.pop(tag)
        work = sample.work
        verdict = replace(verdict, sample=work.position)
        if sample.later:
            if self._later.pop(tag, None) is None:  # it was given up
                return
            self._room.release()
        programs = sample.attempts.programs
        self._reply(tag, _answer(work, verdict, cases, programs[-1] if programs else None))


def _task(item: WorkItem) -> JudgeTask:
    """Return the task with what the request says about it. Clients name their own tests."""
    task, work = item.context, item.payload
    problem = replace(task.problem, task_id=work.task_id)
    return replace(
        task, problem=problem, limits=work.limits, alone=task.alone or work.alone, unscorable=""
    )


def _job(item: WorkItem, program: Program) -> Job:
    return _task(item).make_job(program, item.tag, seed=item.payload.seed)


def _answer(
    work: JudgeWork, verdict: Verdict, cases: Cases | None = None, program: Program | None = None
) -> JudgeAnswer:
    if work.kind == "run":
        ended, refused = read_run(cases)
        return JudgeAnswer(
            work.number, verdict.status, verdict.reason, b"", verdict.cpu_s, verdict.detail,
            verdict.wall_s, verdict.output, ended, refused,
        )  # fmt: skip
    code = program.code if program and work.kind == "completion" else ""
    line = encode_verdict(verdict, work.name, code if work.with_program else None, cases)
    return JudgeAnswer(
        work.number, verdict.status, verdict.reason, line, verdict.cpu_s, explain_failure(verdict),
        verdict.wall_s, verdict.output, program=code, rule=verdict.rule,
    )  # fmt: skip


def read_run(cases: Cases | None) -> tuple[EndedRun | None, str]:
    """Return how a run ended, if it did, or why it could not start. A program may forge either.

    It is read as it is encoded, in the service's own process: to decode it can take long.
    """
    if cases is None:
        return None, ""
    try:
        match cases.expected[GROUP][0]:
            case str(why):
                return None, why
            case {"tuple": [int(code), float(seconds), out, err, list(files)]}:
                outputs = bytes.fromhex(out["bytearray"]), bytes.fromhex(err["bytearray"])
                pairs = [file["tuple"] for file in files]
                found = {str(name): bytes.fromhex(data["bytearray"]) for name, data in pairs}
                return EndedRun(code, seconds, *outputs, found), ""
    except (ValueError, TypeError, KeyError, IndexError):
        pass
    return None, ""

"""Generate and judge at the same time, and write everything to the run's folder."""

from __future__ import annotations

import contextlib
import hashlib
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

from assay import models, runs, sandbox
from assay.extract.workers import PAUSE, ExtractionRequest, Extractor
from assay.pipeline.prompt_settings import complete_prompt
from assay.progress import Reporter
from assay.prompts import Strategy
from assay.protocol import Protocol
from assay.types import (
    Benchmark,
    Completion,
    Job,
    PromptForm,
    Request,
    SampleKey,
    Status,
    Verdict,
)

# Characters of completions that may wait for the judge before the model has to wait. The queue is
# long so that the model keeps working while programs time out (benchmarks/overlap.py).
WAITING = 1 << 25


def sample_seed(seed: int, task_id: str, sample: int) -> int:
    """Return the seed of a sample, which does not depend on when or in which order it is generated.

    A problem's samples have consecutive seeds, so that engines can generate them together.
    """
    digest = hashlib.sha256(f"{seed}/{task_id}".encode()).digest()
    return (int.from_bytes(digest[:4], "big") + sample) % (1 << 31)


def engine_line(model: models.Model) -> str:
    """Return a line with the engine and its settings, which are known after one completion."""
    facts = ", ".join(f"{name} {value}" for name, value in model.describe().to_json().items())
    return f"engine {model.identity.engine}{': ' if facts else ''}{facts}"


_Item = Completion | BaseException | None  # a completion, the failure of the model, or the end


class _Backlog(queue.Queue[_Item]):
    """A queue that is bounded by the length of its texts, not by their number."""

    def _init(self, maxsize: int) -> None:
        super()._init(maxsize)
        self._length = 0

    def _qsize(self) -> int:
        return self._length

    def _put(self, item: _Item) -> None:
        super()._put(item)
        self._length += _length(item)

    def _get(self) -> _Item:
        item: _Item = super()._get()
        self._length -= _length(item)
        return item


def _length(item: _Item) -> int:
    return 1 + (len(item.text) if isinstance(item, Completion) else 0)


class Stream:
    """One pass that brings every sample of a run to a verdict."""

    def __init__(
        self,
        benchmark: Benchmark,
        strategy: Strategy,
        protocol: Protocol,
        model: models.Model,
        judge: sandbox.Sandbox,
        extractor: Extractor,
        run: runs.RunWriter,
        cache: runs.VerdictCache | None,
        unscorable: dict[str, str],
        reporter: Reporter,
    ) -> None:
        self._unscorable = unscorable
        self._problems = {p.task_id: p for p in benchmark.problems}
        self._benchmark = benchmark
        self._strategy = strategy
        self._cache = cache
        # Programs being executed, by cache key, with the samples that wait for the same verdict.
        self._executing: dict[str, list[Job]] = {}
        self._keys: dict[SampleKey, str] = {}
        self._cache_lock = threading.Lock()
        # Samples whose program was cut in doubt: the uncut form, and how the first form failed.
        self._alternatives: dict[SampleKey, Job] = {}
        self._failed: dict[SampleKey, Verdict] = {}
        self._second_jobs: list[Job] = []
        self._protocol = protocol
        self._model = model
        self._sandbox = judge
        self._extractor = extractor
        self._run = run
        self._reporter = reporter
        self._stopped = threading.Event()
        self._described: runs.Environment | None = None
        self._form: PromptForm = model.identity.prompt_form
        self._queue = _Backlog(WAITING)

    def flow(self, keys: list[SampleKey], environment: Callable[[], runs.Environment]) -> None:
        """Bring every sample of ``keys`` to a verdict: complete, extract, judge, record.

        ``environment`` returns where that happens. It is called after the engine has started. A
        verdict that needs no execution is recorded at once.
        """
        self._environment = environment
        with self._generate(keys) as completions:
            jobs = self._extract(completions)
            for verdict in self._judge(jobs):
                self._record(verdict)

    @contextlib.contextmanager
    def _generate(self, keys: list[SampleKey]) -> Iterator[Iterator[Completion | None]]:
        """Generate missing completions in a thread of their own. Yield all that must be judged."""
        done, judged = self._run.completions, self._run.judged
        unjudged = [done[key] for key in keys if key in done and key not in judged]
        missing = [key for key in keys if key not in done]
        if unjudged and not missing:
            self._run.add_environment(self._environment())
        verdicts = self._run.verdicts
        resumed = [verdicts[key] for key in keys if key in judged]
        self._reporter.begin(len(keys), resumed, len(missing))
        models.watch(self._model, self._reporter)
        producer = threading.Thread(target=self._produce, args=(unjudged, missing), daemon=True)
        producer.start()
        try:
            yield self._arrivals()
        finally:
            self._stopped.set()
            self._model.close()
            self._release()
            producer.join()

    def _produce(self, unjudged: list[Completion], missing: list[SampleKey]) -> None:
        """Put the model's completions, or its failure, into the queue. Runs in its own thread."""
        try:
            for completion in unjudged:
                self._put(completion)
            for number, completion in enumerate(self._model.generate(self._requests(missing))):
                if number == 0:
                    self._describe()
                self._run.add_completion(completion)
                self._reporter.completed(completion)
                self._put(completion)
            if self._described:
                self._describe()  # an engine may know more about itself now
            self._put(None)
        except BaseException as error:
            self._put(error)

    def _describe(self) -> None:
        """Record and report the environment, if it is new."""
        environment = self._environment()
        if environment == self._described:
            return
        self._described = environment
        self._run.add_environment(environment)
        self._reporter.note(engine_line(self._model))

    def _put(self, item: _Item) -> None:
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.2)
                return
            except queue.Full:
                continue

    def _release(self) -> None:
        """Empty the queue after a stop, and end it, so that no thread waits for it."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._queue.get_nowait()
        self._queue.put_nowait(None)

    def _requests(self, missing: list[SampleKey]) -> Iterator[Request]:
        decoding = self._protocol.decoding
        for task_id, sample in missing:
            if self._stopped.is_set():
                return
            built = self._strategy.build(self._problems[task_id], self._form)
            prompt = complete_prompt(built, self._protocol.asking)
            seed = sample_seed(decoding.seed, task_id, sample)
            yield Request(task_id, sample, prompt, decoding, seed)

    def _extract(self, completions: Iterator[Completion | None]) -> Iterator[Job]:
        """Yield the program of each completion. A completion without a program fails here."""
        for completion, found in self._extractor.stream(self._extractable(completions)):
            if found.reason:
                self._record(_verdict(completion, "fail", found.reason, found.detail))
                continue
            job = Job(
                task_id=completion.task_id,
                sample=completion.sample,
                program=found.program,
                tests=self._problems[completion.task_id].tests,
                limits=self._benchmark.limits_of(completion.task_id),
                imports=self._benchmark.imports,
                environment=self._benchmark.environment,
                seed=self._run.tests_seed,
            )
            self._run.add_program(job, found.program)
            if found.alternative is not None:
                self._alternatives[job.key] = replace(job, program=found.alternative)
            yield job

    def _extractable(
        self, completions: Iterator[Completion | None]
    ) -> Iterator[tuple[Completion, ExtractionRequest] | None]:
        """Yield the completions that can be judged. Record the verdicts of the others."""
        for item in completions:
            if item is PAUSE:
                yield PAUSE
            elif item.error is not None:
                self._record(_verdict(item, "invalid", "generation-error", item.error))
            elif item.task_id in self._unscorable:
                why = f"the reference fails here: {self._unscorable[item.task_id]}"
                self._record(_verdict(item, "invalid", "unscorable", why))
            elif item.finish_reason == "prompt-too-long":
                why = "the prompt does not fit into the model's context"
                self._record(_verdict(item, "fail", "prompt-too-long", why))
            else:
                problem = self._problems[item.task_id]
                yield item, ExtractionRequest(item.text, problem, self._form)

    def _arrivals(self) -> Iterator[Completion | None]:
        """Yield what is in the queue, and a pause before every wait."""
        while not self._stopped.is_set():
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                yield PAUSE
                item = self._queue.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                yield PAUSE
                raise item
            yield item

    def _judge(self, jobs: Iterator[Job]) -> Iterator[Verdict]:
        """Execute the programs whose verdict is not known yet, and yield their verdicts."""
        for verdict in self._sandbox.judge(job for job in jobs if not self._is_known(job)):
            yield from self._settle_all(verdict)
        # They are few, so they are judged last and need no second queue.
        again = (job for job in self._second_jobs if not self._is_known(job))
        for verdict in self._sandbox.judge(again) if self._second_jobs else ():
            yield from self._settle_all(verdict)

    def _is_known(self, job: Job) -> bool:
        """Return whether the verdict is cached, or the same program is being executed."""
        if self._cache is None:
            return False
        key = self._cache.key(job)
        with self._cache_lock:
            if key in self._executing:
                self._executing[key].append(job)
                return True
            verdict = self._cache.get(key, job)
            if verdict is None:
                self._executing[key] = []
                self._keys[job.task_id, job.sample] = key
                return False
        if settled := self._settle(verdict):
            self._record(settled, cached=True)
        return True

    def _settle_all(self, verdict: Verdict) -> Iterator[Verdict]:
        """Yield the verdict; record it for the samples that have the same program."""
        if settled := self._settle(verdict):
            yield settled
        if self._cache is None:
            return
        key = self._keys.pop(verdict.key)
        self._cache.put(key, verdict)  # first, so that other threads find it or wait for it
        with self._cache_lock:
            waiting = self._executing.pop(key)
        for job in waiting:
            same = replace(verdict, task_id=job.task_id, sample=job.sample, rule=job.program.rule)
            if settled := self._settle(same):
                self._record(settled, cached=True)

    def _settle(self, verdict: Verdict) -> Verdict | None:
        """Return the sample's verdict, or None if another form of the program must be judged first.

        If both forms fail, the verdict on the first one counts.
        """
        other = self._alternatives.pop(verdict.key, None)
        if other is not None and verdict.status == "fail":
            self._failed[verdict.key] = verdict
            self._run.add_program(other, other.program)
            self._second_jobs.append(other)
            return None
        first = self._failed.pop(verdict.key, verdict)
        return first if verdict.status == "fail" else verdict

    def _record(self, verdict: Verdict, *, cached: bool = False) -> None:
        """Write the verdict to the run's folder and report it."""
        if verdict.status == "fail" and self._run.is_truncated(verdict.key):
            detail = f"{verdict.reason}: {verdict.detail}"
            verdict = replace(verdict, reason="truncated", detail=detail)
        self._run.add_verdict(verdict)
        self._reporter.judged(verdict, cached)


def _verdict(completion: Completion, status: Status, reason: str, detail: str) -> Verdict:
    return Verdict(completion.task_id, completion.sample, status, reason, detail, rule="none")

"""Generate and judge at the same time, and write everything to the run's folder."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol as TypingProtocol
from typing import runtime_checkable

from assay import models, runs, sandbox
from assay.judging import JudgeTask, tasks_of
from assay.judging.references import CheckedBenchmark
from assay.judging.stage import Judged, SampleStage, SampleText
from assay.pipeline.prompt_settings import complete_prompt
from assay.pipeline.times import PartClock
from assay.progress import Reporter
from assay.prompts import Strategy
from assay.protocol import PromptSettings, Protocol
from assay.sandbox import PAUSE
from assay.types import (
    Benchmark,
    Completion,
    Decoding,
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


def build_requests(
    samples: Iterable[SampleKey],
    benchmark: Benchmark,
    strategy: Strategy,
    asking: PromptSettings,
    decoding: Decoding,
) -> Iterator[Request]:
    """Yield the requests for a model, in the order of the samples."""
    problems = {problem.task_id: problem for problem in benchmark.problems}
    for task_id, of_task in itertools.groupby(samples, key=lambda key: key[0]):
        built = strategy.build(problems[task_id], asking.prompt_form)
        prompt = complete_prompt(built, asking)
        for _, sample in of_task:
            yield Request(
                task_id, sample, prompt, decoding, sample_seed(decoding.seed, task_id, sample)
            )


def engine_line(model: models.Model) -> str:
    """Return a line with the engine and its settings, which are known after one completion."""
    facts = ", ".join(f"{name} {value}" for name, value in model.describe().to_json().items())
    return f"engine {model.identity.engine}{': ' if facts else ''}{facts}"


@runtime_checkable
class EncodingModel(models.Model, TypingProtocol):
    """A model whose engines are elsewhere, and encode what is recorded there."""

    def generate_encoded(
        self, requests: Iterable[Request]
    ) -> Iterator[Sequence[runs.EncodedCompletion]]:
        """Yield completions as ``generate`` does, in the batches in which they arrive."""
        ...


# Completions, the failure of the model, or the end.
_Item = Sequence[Completion] | BaseException | None


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
    if item is None or isinstance(item, BaseException):
        return 1
    return sum(1 + len(completion.text) for completion in item)


class Stream:
    """One pass that brings every sample of a run to a verdict."""

    def __init__(
        self,
        benchmark: Benchmark,
        strategy: Strategy,
        protocol: Protocol,
        model: models.Model,
        judge: sandbox.Sandbox,
        run: runs.RunWriter,
        cache: runs.VerdictCache | None,
        workers: int,
        checked: CheckedBenchmark,
        reporter: Reporter,
        store: runs.CompletionStore | None = None,
        when_generated: Callable[[], None] = lambda: None,
        begun: float | None = None,
    ) -> None:
        self._begun = time.monotonic() if begun is None else begun
        self._store = store
        self._when_generated = when_generated
        self._generated = threading.Event()
        self._checked = checked
        self._benchmark = benchmark
        form = benchmark.form_for(model.identity.prompt_form)
        self._tasks = tasks_of(benchmark)
        self._stage = SampleStage(form, benchmark.environment, run.tests_seed, cache, workers)
        self._strategy = strategy
        self._protocol = protocol
        self._model = model
        self._sandbox = judge
        self._run = run
        self._reporter = reporter
        self._stopped = threading.Event()
        self._described: runs.Environment | None = None
        self._form: PromptForm = form
        self._queue = _Backlog(WAITING)

    def flow(self, keys: list[SampleKey], environment: Callable[[], runs.Environment]) -> None:
        """Bring every sample of ``keys`` to a verdict: complete, extract, judge, record.

        ``environment`` returns where that happens. It is called after the engine has started. A
        verdict that needs no execution is recorded at once.
        """
        self._environment = environment
        self._clock = PartClock(self._run, self._begun)
        if self._run.judged.issuperset(keys):
            self._flow(keys)  # nothing to do, so this is not a part of the run
            return
        try:
            self._flow(keys)
        finally:
            self._clock.record(ended=True)

    def _flow(self, keys: list[SampleKey]) -> None:
        with self._generate(keys) as completions:
            items = self._items(completions)
            self._sandbox.run_stage(self._stage, items, self._record_judged, len(keys))

    @contextlib.contextmanager
    def _generate(self, keys: list[SampleKey]) -> Iterator[Iterator[Completion | None]]:
        """Generate missing completions in a separate thread. Yield all that must be judged."""
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
            if not self._generated.is_set():  # otherwise it may stay loaded for another run
                self._model.close()
            self._release()
            producer.join()

    def _produce(self, unjudged: list[Completion], missing: list[SampleKey]) -> None:
        """Put the model's completions, or its failure, into the queue. Runs in its own thread."""
        recorded = isinstance(self._model, models.RecordedModel)
        try:
            for completion in unjudged:
                self._put([completion])
            for encoded in self._complete(self._requests(missing)):
                batch = [one.completion for one in encoded]
                if not (self._described or all(one.reused for one in batch)):
                    self._describe()  # the engine has started
                self._run.add_completions(encoded)
                for completion in batch:
                    if not (completion.reused or recorded):
                        self._clock.generating.add(completion.inference_ms / 1000)
                    self._reporter.completed(completion)
                self._clock.record()
                self._put(batch)
            if missing:
                self._describe()  # an engine may know more about itself now
            self._generated.set()
            self._when_generated()
            self._put(None)
        except BaseException as error:
            self._put(error)

    def _complete(self, requests: Iterator[Request]) -> Iterator[Sequence[runs.EncodedCompletion]]:
        """Return the completions of requests, in batches if they come so."""
        model, store = self._model, self._store
        if store is None and isinstance(model, EncodingModel):
            return model.generate_encoded(requests)
        complete = store.reuse(model.generate) if store else model.generate
        return ([runs.encode_completion(one)] for one in complete(requests))

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
        protocol = self._protocol
        requests = build_requests(
            missing, self._benchmark, self._strategy, protocol.asking, protocol.decoding
        )
        return itertools.takewhile(lambda _: not self._stopped.is_set(), requests)

    def _items(
        self, completions: Iterator[Completion | None]
    ) -> Iterator[tuple[JudgeTask, SampleText] | None]:
        """Yield the completions that can be judged. Record the verdicts of the others.

        Those of a task whose reference still runs come last.
        """
        late = []
        for item in completions:
            if item is not PAUSE and self._checked.is_pending(item.task_id):
                late.append(item)
            else:
                yield from self._item(item)
        if late:
            yield PAUSE
            self._checked.wait()
        for item in late:
            yield from self._item(item)

    def _item(self, item: Completion | None) -> Iterator[tuple[JudgeTask, SampleText] | None]:
        unscorable = self._checked.unscorable
        if item is PAUSE:
            yield PAUSE
        elif item.error is not None:
            self._record_unjudged(item, "invalid", "generation-error", item.error)
        elif item.task_id in unscorable:
            why = f"the reference fails here: {unscorable[item.task_id]}"
            self._record_unjudged(item, "invalid", "unscorable", why)
        elif item.finish_reason == "prompt-too-long":
            why = "the prompt does not fit into the model's context"
            self._record_unjudged(item, "fail", "prompt-too-long", why)
        else:
            truncated = item.finish_reason == "length"
            self._clock.judging.change(1)
            yield self._tasks[item.task_id], SampleText(item.sample, item.text, truncated)

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
            yield from item

    def _record_unjudged(
        self, completion: Completion, status: Status, reason: str, detail: str
    ) -> None:
        verdict = Verdict(*completion.key, status, reason, detail, rule="none")
        self._record([Judged(runs.encode_judged(verdict))])

    def _record_judged(self, judged: Sequence[Judged]) -> None:
        self._clock.judging.change(-len(judged))
        self._record(judged)

    def _record(self, judged: Sequence[Judged]) -> None:
        """Write programs and verdicts to the run's folder and report the verdicts."""
        self._run.add_judged([one.lines for one in judged])
        for one in judged:
            self._reporter.judged(one.lines.verdict, one.cached)
        self._clock.record()

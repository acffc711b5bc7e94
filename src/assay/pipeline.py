"""The stream: completions are judged while the model still generates, all of it written down."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import platform
import queue
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from typing import Protocol as Interface

from assay import __version__, benchmarks, codec, extract, models, runs, sandbox, scoring
from assay.errors import UsageError
from assay.prompts import strategies
from assay.protocol import Protocol
from assay.types import Decoding, Job, Request, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from assay.prompts import Strategy
    from assay.types import Benchmark, Completion, PromptForm, SampleKey

DEFAULT_TOP_K = 40
# Completions that wait for a judge before the model has to: enough to even out slow programs.
WAITING = 64


@dataclass(frozen=True, slots=True)
class EvalConfig:
    """What the user asked for."""

    benchmark: str
    results_dir: Path
    model: str = models.DEFAULT
    samples: int = 0
    n_samples: int = 1
    temperature: float = 0.0
    top_k: int | None = None
    max_tokens: int = 512
    seed: int = 0
    prompt_strategy: str = "standard"
    sandbox: str = "process"
    workers: int = 0
    batch_mode: models.BatchMode = "auto"
    fresh: bool = False


class Observer(Interface):
    """Whoever watches a run. Called from several threads."""

    def note(self, text: str) -> None: ...
    def begin(self, total: int, verdicts: list[Verdict]) -> None: ...
    def completed(self, completion: Completion) -> None: ...
    def judged(self, verdict: Verdict) -> None: ...


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A finished run: the results file's content and its path."""

    result: dict[str, Any]
    path: Path


def evaluate(config: EvalConfig, observer: Observer) -> Evaluation:
    """Run (or continue) the evaluation and write its results file."""
    decoding = resolve_decoding(config)
    strategy = strategies.get(config.prompt_strategy)
    benchmark = _first(benchmarks.load(config.benchmark, observer.note), config.samples)
    model = models.open_model(config.model, config.batch_mode, observer.note)
    judge = sandbox.open_sandbox(config.sandbox, config.workers)
    protocol = _protocol(config, benchmark, strategy, decoding, judge)
    run = runs.open_run(config.results_dir, protocol, model.identity, fresh=config.fresh)
    try:
        _Stream(benchmark, strategy, protocol, model, judge, run, observer).flow()
        tallies = scoring.tally([p.task_id for p in benchmark.problems], run.verdicts.values())
        result = runs.build_result(run, protocol, tallies, scoring.estimates(tallies))
        return Evaluation(result, runs.write_result(run, result, tallies))
    finally:
        run.close()


def resolve_decoding(config: EvalConfig) -> Decoding:
    """The settings in force. Greedy has one spelling, whatever top-k and seed were given."""
    if config.n_samples < 1:
        raise UsageError(f"--n-samples must be at least 1, got {config.n_samples}")
    if config.samples < 0:
        raise UsageError(f"--samples must be 0 (all) or more, got {config.samples}")
    if config.max_tokens < 1:
        raise UsageError(f"--max-tokens must be at least 1, got {config.max_tokens}")
    if not 0 <= config.temperature < float("inf"):
        raise UsageError(f"--temperature must be 0 or more, got {config.temperature}")
    top_k = DEFAULT_TOP_K if config.top_k is None else config.top_k
    if top_k < 0:
        raise UsageError(f"--top-k must be 0 (off) or more, got {top_k}")
    if config.workers < 0:
        raise UsageError(f"--workers must be 0 (one per core) or more, got {config.workers}")
    if config.temperature == 0:
        return Decoding(max_tokens=config.max_tokens)
    return Decoding(config.max_tokens, config.temperature, top_k, seed=config.seed)


def sample_seed(seed: int, task_id: str, sample: int) -> int:
    """A seed of each sample's own, the same whenever and in whatever order it is made."""
    digest = hashlib.sha256(f"{seed}/{task_id}/{sample}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


class _Stream:
    """One pass from what is missing in a run to a verdict on every sample."""

    def __init__(
        self,
        benchmark: Benchmark,
        strategy: Strategy,
        protocol: Protocol,
        model: models.Model,
        judge: sandbox.Sandbox,
        run: runs.RunFolder,
        observer: Observer,
    ) -> None:
        self._problems = {p.task_id: p for p in benchmark.problems}
        self._limits = benchmark.limits
        self._strategy = strategy
        self._protocol = protocol
        self._model = model
        self._sandbox = judge
        self._run = run
        self._observer = observer
        self._stopped = threading.Event()
        self._form: PromptForm = model.identity.prompt_form
        self._queue: queue.Queue[Completion | BaseException | None] = queue.Queue(WAITING)

    def flow(self) -> None:
        keys = [(t, s) for t in self._problems for s in range(self._protocol.n_samples)]
        made, judged = self._run.completions, self._run.judged
        unjudged = [made[key] for key in keys if key in made and key not in judged]
        missing = [key for key in keys if key not in made]
        if unjudged or missing:
            self._run.add_environment(_environment(self._model, self._sandbox))
        verdicts = self._run.verdicts
        self._observer.begin(len(keys), [verdicts[key] for key in keys if key in judged])
        producer = threading.Thread(target=self._produce, args=(unjudged, missing), daemon=True)
        producer.start()
        try:
            for verdict in self._sandbox.judge(self._jobs()):
                self._conclude(verdict)
        finally:
            self._stopped.set()
            self._model.close()
            self._release()
            producer.join()

    def _produce(self, unjudged: list[Completion], missing: list[SampleKey]) -> None:
        """In a thread of its own: the model's completions into the queue, and its failure too."""
        try:
            for completion in unjudged:
                self._put(completion)
            for completion in self._model.generate(self._requests(missing)):
                self._run.add_completion(completion)
                self._observer.completed(completion)
                self._put(completion)
            self._put(None)
        except BaseException as error:
            self._put(error)

    def _put(self, item: Completion | BaseException | None) -> None:
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.2)
                return
            except queue.Full:
                continue

    def _release(self) -> None:
        """After a stop: room for a producer that waits, an end for a judge that waits."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._queue.get_nowait()
        self._queue.put_nowait(None)

    def _requests(self, missing: list[SampleKey]) -> Iterator[Request]:
        decoding = self._protocol.decoding
        for task_id, sample in missing:
            if self._stopped.is_set():
                return
            prompt = self._strategy.build(self._problems[task_id], self._form)
            seed = sample_seed(decoding.seed, task_id, sample)
            yield Request(task_id, sample, prompt, decoding, seed)

    def _jobs(self) -> Iterator[Job]:
        """What there is to execute; a completion without code is judged on the way."""
        while not self._stopped.is_set():
            item = self._queue.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            problem = self._problems[item.task_id]
            program = extract.extract(item.text, problem, self._form)
            if item.error is not None:
                self._conclude(_verdict(item, "invalid", "generation-error", item.error))
            elif program == extract.NO_CODE:
                detail = f"the text defines no {problem.entry_point}"
                self._conclude(_verdict(item, "fail", "no-code", detail))
            else:
                yield Job(
                    task_id=item.task_id,
                    sample=item.sample,
                    preamble=problem.preamble,
                    program=program,
                    tests=problem.tests,
                    limits=self._limits,
                )

    def _conclude(self, verdict: Verdict) -> None:
        self._run.add_verdict(verdict)
        self._observer.judged(verdict)


def _verdict(completion: Completion, status: Any, reason: str, detail: str) -> Verdict:
    return Verdict(completion.task_id, completion.sample, status, reason, detail, rule="none")


def _first(benchmark: Benchmark, count: int) -> Benchmark:
    problems = benchmark.problems[:count] if count else benchmark.problems
    return dataclasses.replace(benchmark, problems=problems)


def _protocol(
    config: EvalConfig,
    benchmark: Benchmark,
    strategy: Strategy,
    decoding: Decoding,
    judge: sandbox.Sandbox,
) -> Protocol:
    capabilities = judge.capabilities()
    return Protocol(
        benchmark=benchmark.name,
        benchmark_version=benchmark.version,
        data_sha256=benchmark.data_sha256,
        problems=len(benchmark.problems),
        problems_sha256=codec.digest([p.task_id for p in benchmark.problems]),
        n_samples=config.n_samples,
        prompt_strategy=strategy.name,
        prompt_strategy_version=strategy.version,
        decoding=decoding,
        extraction_version=extract.VERSION,
        tests="base",
        limits=benchmark.limits,
        sandbox=capabilities.kind,
        # Patch releases do not change what a program means.
        python=capabilities.python.rpartition(".")[0],
    )


def _environment(model: models.Model, judge: sandbox.Sandbox) -> dict[str, Any]:
    return {
        "assay": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "engine": model.describe(),
        "sandbox": codec.to_json(judge.capabilities()),
    }

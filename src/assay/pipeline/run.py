"""A run: complete, judge, record, score.

Completions are judged while the model generates others, and everything is written to the run's
folder as it happens. The sandbox's workers take completions when they are free. A model that is
faster waits for them, so that a run takes as long as the slower of the two.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol as TypingProtocol
from typing import runtime_checkable

from assay import benchmarks, models, runs, scoring
from assay.errors import RunError, UsageError
from assay.judging import JudgeTask, references, tasks_of
from assay.judging.measures import match_score, with_measures
from assay.judging.references import CheckedBenchmark
from assay.judging.stage import Judged, SampleStage, SampleText
from assay.pipeline.best_of_n import best_of_n
from assay.pipeline.judging import (
    engine_line,
    environment,
    long_first,
    open_sandbox,
    open_verdict_cache,
    report_python,
)
from assay.pipeline.plan import RunPlan, case_groups
from assay.pipeline.times import PartClock
from assay.progress import Reporter
from assay.protocol import Protocol
from assay.runs import Result
from assay.runs.folder import make_key, run_folders
from assay.sandbox import PAUSE, Capabilities, Sandbox
from assay.types import Benchmark, Completion, Request, SampleKey, Status, Verdict
from assay.work.ahead import ReadAhead

# Characters of completions that may wait for the judge before the model has to wait. There are many
# so that the model keeps working while programs time out (benchmarks/overlap.py).
WAITING = 1 << 25


def execute(plan: RunPlan, reporter: Reporter) -> Result:
    """Run a plan, or resume its run: write the results file, and return the result."""
    with open_run(plan, reporter) as run:
        with run.timed(), complete(run) as completions:
            judge(run, completions, record)
        return score(run)


@contextlib.contextmanager
def complete(run: OpenRun) -> Iterator[Iterable[Sequence[Completion] | None]]:
    """Generate what is missing in a thread of its own. Yield all completions to judge, in batches.

    If the block ends early, the engine is stopped. Otherwise it may stay loaded for another run.
    """
    if run.unjudged and not run.missing:
        run.folder.add_environment(run.environment())
    verdicts, judged = run.folder.verdicts, run.folder.judged
    resumed = [verdicts[key] for key in run.keys if key in judged]
    run.reporter.begin(len(run.keys), resumed, len(run.missing))
    models.watch(run.plan.model, run.reporter)

    def stop() -> None:
        run.stopped.set()
        if not run.generated.is_set():
            run.plan.model.close()

    with ReadAhead(_generate(run), _count_characters, WAITING, stop) as completions:
        yield completions


def judge(
    run: OpenRun,
    completions: Iterable[Sequence[Completion] | None],
    record: Callable[[OpenRun, Sequence[Judged]], None],
) -> None:
    """Judge completions as they come, where the sandbox's workers are.

    The workers pull. A free one takes the next job, the extractor takes texts for it in batches,
    and those are read here from ``completions``, so that nothing is taken before it is needed. If
    nothing has arrived, a pause is passed on, and nobody waits for a full batch. ``record`` is
    called with verdicts as they are reached, from any thread.
    """

    def answer(judged: Sequence[Judged]) -> None:
        run.clock.judging.change(-len(judged))
        record(run, judged)

    config = run.plan.config
    cache = None
    if not config.no_cache:
        cache = open_verdict_cache(run.sandbox.capabilities(), run.protocol.environment)
    stage = SampleStage(
        run.benchmark.environment, cache, config.workers, run.plan.form, run.folder.tests_seed
    )
    run.sandbox.run_stage(stage, _list_texts(run, completions), answer, len(run.keys))


def record(run: OpenRun, judged: Sequence[Judged]) -> None:
    """Write programs and verdicts to the run's folder and report the verdicts."""
    run.folder.add_judged([one.lines for one in judged])
    for one in judged:
        run.reporter.judged(one.lines.verdict, one.cached)
    run.clock.record()


def score(run: OpenRun) -> Result:
    """Write the results file, and return the result."""
    run.references.wait()
    plan, folder, rounds = run.plan, run.folder, run.plan.rounds
    task_ids, problems = plan.task_ids, plan.selected.benchmark.problems
    wanted, clusters = set(task_ids), {p.task_id: p.cluster for p in problems if p.cluster}
    verdicts = [
        verdict
        for verdict in folder.verdicts.values()
        if verdict.task_id in wanted and (not rounds or verdict.sample < rounds)
    ]
    tallies = scoring.tally(task_ids, verdicts, clusters)
    labels = {p.task_id: p.labels for p in problems if p.labels}
    unscorable = run.references.unscorable
    result = runs.build_result(
        folder, run.protocol, tallies,
        scoring.coverage(tallies, plan.most_samples, plan.selected.total, unscorable),
        scoring.estimates(tallies),
        scoring.group_scores(task_ids, verdicts, case_groups(run.benchmark), clusters),
        unscorable,
        (plan.engine.price_in, plan.engine.price_out),
        _choose_best(run),
        scoring.break_down(tallies, labels),
        rounds,
        match_score(plan.selected.benchmark, folder, verdicts, clusters),
    )  # fmt: skip
    result = runs.with_earlier_checks(result, folder)
    result = with_measures(result, run.benchmark, folder, run.sandbox, run.reporter)
    runs.write_result(result)
    return result


@dataclass(slots=True)
class OpenRun:
    """A run whose folder and sandbox are open, and what is left to do in it."""

    plan: RunPlan
    reporter: Reporter
    sandbox: Sandbox
    protocol: Protocol
    folder: runs.RunWriter
    references: CheckedBenchmark
    benchmark: Benchmark  # with outputs of references and the run's time limits
    keys: list[SampleKey]  # those that take long to judge first
    missing: list[SampleKey]  # samples without a completion
    unjudged: list[Completion]  # of an earlier part of the run
    clock: PartClock
    described: runs.Environment | None = None  # the last one that was recorded
    stopped: threading.Event = field(default_factory=threading.Event)
    generated: threading.Event = field(default_factory=threading.Event)

    def environment(self) -> runs.Environment:
        """Return where the run is executed. Engines know more after their first completion."""
        return environment(self.plan.model, self.sandbox.capabilities(), self.plan.gate)

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Record the times of this part of the run, unless there is nothing to do."""
        is_complete = self.folder.judged.issuperset(self.keys)
        try:
            yield
        finally:
            if not is_complete:
                self.clock.record(ended=True)


@contextlib.contextmanager
def open_run(plan: RunPlan, reporter: Reporter) -> Iterator[OpenRun]:
    """Open or create the run of a plan, and get ready to judge.

    The folder is opened first: it knows which samples are missing. If the model is needed for them,
    it loads while references are checked and the sandbox starts.
    """
    config = plan.config
    for note in plan.notes:
        reporter.note(note)
    with contextlib.ExitStack() as stack:
        sandbox = open_sandbox(config, plan.benchmark, reporter)
        stack.callback(sandbox.close)
        protocol = plan.protocol(sandbox.capabilities())
        plan.admit(protocol, make_key(protocol, plan.model.identity, plan.engine.name))
        folder = runs.open_run(
            config.results_dir, protocol, plan.model.identity,
            fresh=config.fresh, tests_seed=config.tests_seed, selection=plan.selected.label,
            name=plan.engine.name, warn=reporter.note,
        )  # fmt: skip
        stack.callback(folder.close)
        _check_folder(plan, folder)
        done = folder.completions
        if plan.needs_model([key for key in plan.keys if key not in done]):
            models.preload(plan.model, plan.loaded_for or plan.decoding)
        checked = references.check(
            plan.benchmark, sandbox, reporter, again=config.check_references,
            open_late=lambda: config.site.open_sandbox(
                config.sandbox, 1, config.sandbox_tier, config.python
            ),
        )  # fmt: skip
        stack.callback(checked.close)
        report_python(config, plan.benchmark, sandbox.capabilities(), reporter)
        cpu_s = folder.keep_time_limits(checked.benchmark.cpu_s)
        benchmark = dataclasses.replace(checked.benchmark, cpu_s=cpu_s)
        keys = long_first(plan.keys, checked.seconds, benchmark.timed)
        judged = folder.judged
        yield OpenRun(
            plan, reporter, sandbox, protocol, folder, checked, benchmark, keys,
            missing=[key for key in keys if key not in done],
            unjudged=[done[key] for key in keys if key in done and key not in judged],
            clock=PartClock(folder, plan.begun),
        )  # fmt: skip


def _check_folder(plan: RunPlan, folder: runs.RunWriter) -> None:
    """Raise an error if the run must not be resumed. Record where a user's benchmark is."""
    runs.check_resumed(folder)
    used_gpu = all(completion.used_gpu for completion in folder.completions.values())
    if plan.engine.device == "cuda" and not used_gpu:
        raise UsageError(
            f"{folder.path}: has completions that were generated without a GPU. Use --fresh to "
            "generate all of them with --device cuda."
        )
    if benchmarks.is_file(plan.config.benchmark):
        folder.relocate_benchmark(str(Path(plan.config.benchmark).absolute()))


def find_missing(plan: RunPlan, capabilities: Capabilities) -> list[SampleKey]:
    """Return the samples without a completion, without opening the run."""
    config = plan.config
    key = make_key(plan.protocol(capabilities), plan.model.identity, plan.engine.name)
    folders = [] if config.fresh else run_folders(config.results_dir)
    for path, about in folders:
        if about.key == key and config.tests_seed in ("", about.tests_seed):
            with contextlib.suppress(RunError):
                done = runs.RunReader(path).completions
                return [key for key in plan.keys if key not in done]
            break
    return plan.keys


@runtime_checkable
class EncodingModel(models.Model, TypingProtocol):
    """A model whose engines are elsewhere, and encode what is recorded there."""

    def generate_encoded(
        self, requests: Iterable[Request]
    ) -> Iterator[Sequence[runs.EncodedCompletion]]:
        """Yield completions as ``generate`` does, in the batches in which they arrive."""
        ...


def _generate(run: OpenRun) -> Iterator[Sequence[Completion]]:
    """Yield what an earlier part of the run left, then completions that are recorded here."""
    recorded = isinstance(run.plan.model, models.RecordedModel)
    yield from ([completion] for completion in run.unjudged)
    requests = run.plan.requests(run.missing)
    requests = itertools.takewhile(lambda _: not run.stopped.is_set(), requests)
    for encoded in _ask(run.plan, requests):
        batch = [one.completion for one in encoded]
        if not (run.described or all(one.reused for one in batch)):
            _describe(run)  # the engine has started
        run.folder.add_completions(encoded)
        for completion in batch:
            if not (completion.reused or recorded):
                run.clock.generating.add(completion.inference_ms / 1000)
            run.reporter.completed(completion)
        run.clock.record()
        yield batch
    if run.missing:
        _describe(run)  # an engine may know more about itself now
    run.generated.set()
    run.plan.when_generated(run.sandbox.capabilities())


def _ask(plan: RunPlan, requests: Iterator[Request]) -> Iterator[Sequence[runs.EncodedCompletion]]:
    """Return the completions of requests, in batches if they come so."""
    model, store = plan.model, plan.store
    if store is None and isinstance(model, EncodingModel):
        return model.generate_encoded(requests)
    complete = store.reuse(model.generate) if store else model.generate
    return ([runs.encode_completion(one)] for one in complete(requests))


def _describe(run: OpenRun) -> None:
    """Record and report the environment, if it is new."""
    environment = run.environment()
    if environment != run.described:
        run.described = environment
        run.folder.add_environment(environment)
        run.reporter.note(engine_line(run.plan.model))


def _count_characters(completions: Sequence[Completion]) -> int:
    return sum(1 + len(completion.text) for completion in completions)


def _list_texts(
    run: OpenRun, completions: Iterable[Sequence[Completion] | None]
) -> Iterator[tuple[JudgeTask, SampleText] | None]:
    """Yield the texts to judge. Record the verdicts on completions that need no judge.

    Those of a task whose reference still runs come last.
    """
    tasks, late = tasks_of(run.benchmark), list[Completion]()

    def prepare(completion: Completion) -> Iterator[tuple[JudgeTask, SampleText]]:
        if (verdict := _judge_unread(run, completion)) is not None:
            record(run, [Judged(runs.encode_judged(verdict))])
        else:
            run.clock.judging.change(1)
            truncated = completion.finish_reason == "length"
            text = SampleText(completion.sample, completion.text, truncated)
            yield tasks[completion.task_id], text

    for batch in completions:
        if batch is PAUSE:
            yield PAUSE
            continue
        for completion in batch:
            if run.references.is_pending(completion.task_id):
                late.append(completion)
            else:
                yield from prepare(completion)
    if late:
        yield PAUSE
        run.references.wait()
    for completion in late:
        yield from prepare(completion)


def _judge_unread(run: OpenRun, completion: Completion) -> Verdict | None:
    """Return the verdict on a completion whose text is not judged, or None."""

    def verdict(status: Status, reason: str, detail: str) -> Verdict:
        return Verdict(*completion.key, status, reason, detail, rule="none")

    if completion.error is not None:
        return verdict("invalid", "generation-error", completion.error)
    if why := run.references.unscorable.get(completion.task_id):
        return verdict("invalid", "unscorable", f"the reference fails here: {why}")
    if completion.finish_reason == "prompt-too-long":
        why = "the prompt does not fit into the model's context"
        return verdict("fail", "prompt-too-long", why)
    return None


def _choose_best(run: OpenRun) -> scoring.BestOfN | None:
    """Return the score of one sample per problem that a method chooses, if one is set."""
    config, most = run.plan.config, run.plan.most_samples
    method = config.select or runs.kept_selection(run.folder)
    if config.select and most <= 1:
        run.reporter.note("--select: has no effect with one sample per problem")
    if not method or most <= 1:
        return None
    try:
        return best_of_n(
            method, most, run.benchmark, run.plan.form, run.folder, run.sandbox, config.workers,
            run.reporter,
        )  # fmt: skip
    except UsageError as error:
        if config.select:
            raise
        run.reporter.note(f"best of {most} by {method} is not computed: {error}")
        return None

"""Best of N: choose one completion per problem and score its verdict."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from assay import extract, runs, sandbox, selection
from assay.extract.workers import Extraction, ExtractionRequest, Extractor
from assay.judging import tasks_of
from assay.progress import Reporter
from assay.sandbox.environments.interpreters import for_extraction
from assay.scoring import BestOfN, estimate_of_chosen
from assay.types import Benchmark, Completion, Job, Program, PromptForm, Sample, SampleKey

# Examples are small. A program that needs more time for them would fail anyway.
CPU_S, WALL_S = 30.0, 60.0

_Execution = tuple[str, str]  # task and digest of the code: identical programs run once


def best_of_n(
    name: str,
    n: int,
    benchmark: Benchmark,
    form: PromptForm,
    run: runs.RunWriter,
    judge: sandbox.Sandbox,
    workers: int,
    reporter: Reporter,
) -> BestOfN | None:
    """Return the score of the chosen samples, or None if there was nothing to choose from.

    The method does not see the verdicts of the hidden tests. Samples without a valid verdict, from
    the tests or from the examples, cannot be chosen.
    """
    method = selection.methods.get(name)
    interpreter = for_extraction(judge.capabilities(), benchmark.environment)
    candidates: dict[str, list[selection.Candidate]] = defaultdict(list)
    with Extractor(workers, interpreter=interpreter) as extractor:
        probing = _Probing(method, benchmark, form, run, judge, extractor)
        for candidate in probing.candidates(reporter):
            candidates[candidate.task_id].append(candidate)
    chosen = {
        p.task_id: method.choose(sorted(candidates[p.task_id], key=lambda c: c.sample)).sample
        for p in benchmark.problems
        if p.task_id in candidates
    }
    estimate = estimate_of_chosen(chosen, run.verdicts)
    without = sum(task_id in chosen for task_id in probing.without_examples)
    return BestOfN(name, n, estimate, without, chosen) if estimate else None


class _Probing:
    """The examples in the prompts, which are run if the method needs them."""

    def __init__(
        self,
        method: selection.Method,
        benchmark: Benchmark,
        form: PromptForm,
        run: runs.RunWriter,
        judge: sandbox.Sandbox,
        extractor: Extractor,
    ) -> None:
        self._benchmark, self._form, self._run, self._judge = benchmark, form, run, judge
        self._extractor = extractor
        self._problems = {p.task_id: p for p in benchmark.problems}
        self._valid = {key for key in run.judged if key[0] in self._problems}
        limits = replace(
            benchmark.limits,
            cpu_s=min(benchmark.limits.cpu_s, CPU_S),
            wall_s=min(benchmark.limits.wall_s, WALL_S),
        )
        self._tasks = {
            task_id: replace(task, limits=limits, alone=False)
            for task_id, task in tasks_of(benchmark).items()
        }
        programs = {t: p for t, p in self._problems.items() if not p.tests.answer}
        probes = {t: method.probe(p) for t, p in programs.items()} if method.probe else {}
        self._probes = {task_id: probe for task_id, probe in probes.items() if probe}
        self.without_examples = set(self._problems) - set(self._probes) if method.probe else set()
        # A program that was cut in doubt has a second execution, of its uncut form.
        self._waiting: list[tuple[selection.Candidate, list[_Execution]]] = []
        self._executions: dict[SampleKey, _Execution] = {}
        self._known: set[_Execution] = set()
        self._uncut: list[tuple[Job, _Execution]] = []

    def candidates(self, reporter: Reporter) -> Iterator[selection.Candidate]:
        """Yield all candidates, in no particular order."""
        seen: dict[_Execution, selection.ProbeResults] = {}
        for jobs in (self._jobs(), self._uncut_jobs()):
            for verdict, outputs in self._judge.outputs(jobs):
                reporter.preparing("running the examples", len(self._waiting), len(self._valid))
                if verdict.status != "invalid":
                    probe = self._probes[verdict.task_id]
                    seen[self._executions[verdict.key]] = probe.read(verdict, outputs)
        for candidate, executions in self._waiting:
            if not executions:
                yield candidate
            elif all(execution in seen for execution in executions):
                # As in judging, the uncut form counts only if it does better than the cut one.
                best = max((seen[e] for e in executions), key=lambda s: (s.right, s.conduct))
                yield replace(candidate, seen=best)

    def _jobs(self) -> Iterator[Job]:
        """Yield one job per different program. Collect all candidates, without their texts."""
        for completion, found in self._extract():
            # An empty completion has no log-probability.
            logprob = completion.logprob if completion.text else float("-inf")
            candidate = selection.Candidate(completion.task_id, completion.sample, logprob)
            executions: list[_Execution] = []
            self._waiting.append((candidate, executions))
            if completion.task_id not in self._probes or found.program == extract.NO_CODE:
                continue
            executions.append(_execution(completion, found.program))
            if found.alternative is not None:
                uncut = _execution(completion, found.alternative)
                executions.append(uncut)
                self._uncut.append((self._job(completion, found.alternative), uncut))
            if self._is_new(completion, executions[0]):
                yield self._job(completion, found.program)

    def _uncut_jobs(self) -> Iterator[Job]:
        """Yield the uncut forms of programs that were cut in doubt.

        They run last, because a key can name only one job at a time.
        """
        return (job for job, execution in self._uncut if self._is_new(job, execution))

    def _is_new(self, sample: Sample, execution: _Execution) -> bool:
        if execution in self._known:
            return False
        self._known.add(execution)
        self._executions[sample.key] = execution
        return True

    def _job(self, sample: Sample, program: Program) -> Job:
        task = self._tasks[sample.task_id]
        return task.make_job(program, sample.sample, tests=self._probes[sample.task_id].tests)

    def _extract(self) -> Iterator[tuple[Completion, Extraction]]:
        """Yield the completions to choose from. Only programs that have examples are needed."""
        valid = (c for c in self._run.read_completions() if c.key in self._valid)
        if not self._probes:
            return ((c, Extraction(extract.NO_CODE)) for c in valid)
        return self._extractor.in_order(
            (c, ExtractionRequest(c.text if c.task_id in self._probes else "", problem, self._form))
            for c in valid
            for problem in [self._problems[c.task_id]]
        )


def _execution(sample: Sample, program: Program) -> _Execution:
    return sample.task_id, hashlib.sha256(program.code.encode(errors="surrogatepass")).hexdigest()

"""Best of N: one completion per problem is chosen, its verdict is the score."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from assay import extract, runs, sandbox, selection
from assay.extract.workers import Extraction, ExtractionRequest, Extractor
from assay.progress import Reporter
from assay.scoring import BestOfN, estimate_of_chosen
from assay.types import Benchmark, Completion, Job, PromptForm, SampleKey

# Examples are small: a program that needs more for them is lost anyway.
CPU_S, WALL_S = 30.0, 60.0

_Execution = tuple[str, str]  # task and digest of the code: identical programs run once


def best_of_n(
    name: str,
    n: int,
    benchmark: Benchmark,
    form: PromptForm,
    run: runs.RunWriter,
    judge: sandbox.Sandbox,
    extractor: Extractor,
    reporter: Reporter,
) -> BestOfN | None:
    """The score of what the method chooses; None if there was nothing to choose from.

    A choice sees no verdict of the hidden tests, but that there is one: what failed on our side,
    there or with the examples, is left out.
    """
    method = selection.methods.get(name)
    probing = _Probing(method, benchmark, form, run, judge, extractor)
    found: dict[str, list[selection.Candidate]] = defaultdict(list)
    for candidate in probing.candidates(reporter):
        found[candidate.task_id].append(candidate)
    chosen = {
        p.task_id: method.choose(sorted(found[p.task_id], key=lambda c: c.sample)).sample
        for p in benchmark.problems
        if p.task_id in found
    }
    estimate = estimate_of_chosen(chosen, run.verdicts)
    without = sum(task_id in chosen for task_id in probing.without_examples)
    return BestOfN(name, n, estimate, without, chosen) if estimate else None


class _Probing:
    """Runs the prompts' own examples, where the method wants that."""

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
        self._limits = replace(
            benchmark.limits,
            cpu_s=min(benchmark.limits.cpu_s, CPU_S),
            wall_s=min(benchmark.limits.wall_s, WALL_S),
        )
        probes = {t: method.probe(p) for t, p in self._problems.items()} if method.probe else {}
        self._probes = {task_id: probe for task_id, probe in probes.items() if probe}
        self.without_examples = set(probes) - set(self._probes)
        self._waiting: list[tuple[selection.Candidate, _Execution | None]] = []
        self._executions: dict[SampleKey, _Execution] = {}

    def candidates(self, reporter: Reporter) -> Iterator[selection.Candidate]:
        """All that can be chosen from, in no order."""
        seen: dict[_Execution, selection.Seen] = {}
        for verdict, outputs in self._judge.outputs(self._jobs()):
            reporter.preparing("running the examples", len(self._waiting), len(self._valid))
            if verdict.status != "invalid":
                probe = self._probes[verdict.task_id]
                seen[self._executions[verdict.key]] = probe.read(verdict, outputs)
        for candidate, execution in self._waiting:
            if execution is None:
                yield candidate
            elif execution in seen:
                yield replace(candidate, seen=seen[execution])

    def _jobs(self) -> Iterator[Job]:
        """Different programs, and on the way all candidates; texts are not kept."""
        known: set[_Execution] = set()
        for completion, found in self._extracted():
            probe, program = self._probes.get(completion.task_id), found.program
            execution = None
            if program != extract.NO_CODE:
                digest = hashlib.sha256(program.code.encode(errors="surrogatepass")).hexdigest()
                execution = completion.task_id, digest
            # What generated nothing can have no log-probability.
            logprob = completion.logprob if completion.text else float("-inf")
            candidate = selection.Candidate(completion.task_id, completion.sample, logprob)
            self._waiting.append((candidate, execution))
            if probe and execution and execution not in known:
                known.add(execution)
                self._executions[completion.key] = execution
                yield Job(
                    task_id=completion.task_id,
                    sample=completion.sample,
                    program=program,
                    tests=probe.tests,
                    limits=self._limits,
                    imports=self._benchmark.imports,
                    environment=self._benchmark.environment,
                )

    def _extracted(self) -> Iterator[tuple[Completion, Extraction]]:
        """Yield the completions to choose from. Only programs that have examples are needed."""
        valid = (c for c in self._run.read_completions() if c.key in self._valid)
        if not self._probes:
            return ((c, Extraction(extract.NO_CODE)) for c in valid)
        return self._extractor.in_order(
            (c, ExtractionRequest(c.text if c.task_id in self._probes else "", problem, self._form))
            for c in valid
            for problem in [self._problems[c.task_id]]
        )

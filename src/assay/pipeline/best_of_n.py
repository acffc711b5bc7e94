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
from assay.types import Benchmark, Completion, Job, Problem, PromptForm

# Examples are small. A program that needs more time for them would fail anyway.
CPU_S, WALL_S = 30.0, 60.0


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
    probing = _Probing(method, benchmark, run)
    interpreter = for_extraction(judge.capabilities(), benchmark.environment)
    candidates: dict[str, list[selection.Candidate]] = defaultdict(list)
    with Extractor(workers, interpreter=interpreter) as extractor:
        completions = probing.extract(extractor, form)
        for candidate in probing.probe(judge, completions, reporter):
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
    """The examples in the prompts, which are run if the method needs them.

    Identical programs of a task run once. The sample number of a job is that of its program.
    """

    def __init__(self, method: selection.Method, benchmark: Benchmark, run: runs.RunWriter) -> None:
        self._run = run
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
        # Candidates without their texts, each with the numbers of its programs. One that was cut
        # in doubt has two: its uncut form is the second.
        self._waiting: list[tuple[selection.Candidate, list[int]]] = []

    def extract(
        self, extractor: Extractor, form: PromptForm
    ) -> Iterator[tuple[Completion, Extraction]]:
        """Yield the completions to choose from. Only programs that have examples are needed."""
        valid = (c for c in self._run.read_completions() if c.key in self._valid)
        if not self._probes:
            return ((c, Extraction(extract.NO_CODE)) for c in valid)

        def request(completion: Completion, problem: Problem) -> ExtractionRequest:
            text = completion.text if problem.task_id in self._probes else ""
            return ExtractionRequest(text, problem, form)

        return extractor.in_order((c, request(c, self._problems[c.task_id])) for c in valid)

    def probe(
        self,
        judge: sandbox.Sandbox,
        completions: Iterator[tuple[Completion, Extraction]],
        reporter: Reporter,
    ) -> Iterator[selection.Candidate]:
        """Yield all candidates, in no particular order."""
        seen: dict[int, selection.ProbeResults] = {}
        for verdict, outputs in judge.outputs(self._jobs(completions)):
            reporter.preparing("running the examples", len(self._waiting), len(self._valid))
            if verdict.status != "invalid":
                seen[verdict.sample] = self._probes[verdict.task_id].read(verdict, outputs)
        for candidate, numbers in self._waiting:
            if not numbers:
                yield candidate
            elif all(number in seen for number in numbers):
                # As in judging, the uncut form counts only if it does better than the cut one.
                best = max((seen[number] for number in numbers), key=lambda s: (s.right, s.conduct))
                yield replace(candidate, seen=best)

    def _jobs(self, completions: Iterator[tuple[Completion, Extraction]]) -> Iterator[Job]:
        """Yield one job per different program, and collect the candidates."""
        known: dict[tuple[str, bytes], int] = {}  # by task and digest
        for completion, extraction in completions:
            # An empty completion has no log-probability.
            logprob = completion.logprob if completion.text else float("-inf")
            numbers: list[int] = []
            candidate = selection.Candidate(completion.task_id, completion.sample, logprob)
            self._waiting.append((candidate, numbers))
            task_id = completion.task_id
            if task_id not in self._probes or extraction.program == extract.NO_CODE:
                continue
            for program in filter(None, (extraction.program, extraction.alternative)):
                code = program.code.encode(errors="surrogatepass")
                key = task_id, hashlib.sha256(code).digest()
                is_new = key not in known
                numbers.append(known.setdefault(key, len(known)))
                if is_new:
                    tests = self._probes[task_id].tests
                    yield self._tasks[task_id].make_job(program, numbers[-1], tests=tests)

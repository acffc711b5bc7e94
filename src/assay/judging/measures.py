"""Measure the programs that passed, where a benchmark defines more than a score."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from assay.judging.job import task_of
from assay.progress import Reporter
from assay.runs import Result, RunReader
from assay.sandbox import Sandbox
from assay.scoring.estimates import MeasureScore, measure_score
from assay.types import Benchmark, Job, Measure, Problem, Program

SLOWER = 4  # times: what observes a program slows it down


def with_measures(
    result: Result, benchmark: Benchmark, run: RunReader, sandbox: Sandbox, reporter: Reporter
) -> Result:
    """Return the result with the benchmark's measures of the programs that passed."""
    if not benchmark.measures:
        return result
    programs = _read_passed(benchmark, run)
    scores = {
        measure.name: score
        for measure in benchmark.measures
        if (score := _measure(measure, benchmark, programs, sandbox, reporter))
    }
    return replace(result, results=replace(result.results, measures=scores))


def _read_passed(benchmark: Benchmark, run: RunReader) -> dict[str, list[str]]:
    """Return the programs that passed, by task, as often as there are samples of them."""
    tasks = {problem.task_id for problem in benchmark.problems}
    passed = {k: v.rule for k, v in run.verdicts.items() if v.status == "pass" and k[0] in tasks}
    judged = {p.key: p.code for p in run.read_programs() if passed.get(p.key) == p.rule}
    found: dict[str, list[str]] = defaultdict(list)
    for (task_id, _), code in judged.items():
        found[task_id].append(code)
    return found


def _measure(
    measure: Measure,
    benchmark: Benchmark,
    programs: dict[str, list[str]],
    sandbox: Sandbox,
    reporter: Reporter,
) -> MeasureScore | None:
    """Return the mean. Identical programs are executed once."""
    problems = {problem.task_id: problem for problem in benchmark.problems}
    different = {task_id: list(dict.fromkeys(codes)) for task_id, codes in programs.items()}
    count = sum(map(len, different.values()))
    jobs = (
        _job(measure, benchmark, problems[task_id], number, code)
        for task_id, codes in different.items()
        for number, code in enumerate(codes)
    )
    numbers: dict[tuple[str, str], float | None] = {}
    for done, (verdict, outputs) in enumerate(sandbox.outputs(jobs), 1):
        reporter.preparing(f"measuring {measure.name}:", done, count)
        code = different[verdict.task_id][verdict.sample]
        numbers[verdict.task_id, code] = None if outputs is None else measure.read(outputs)
    found = {
        task: [numbers.get((task, code)) for code in codes] for task, codes in programs.items()
    }
    clusters = {p.task_id: p.cluster for p in benchmark.problems if p.cluster}
    return measure_score(found, clusters)


def _job(measure: Measure, benchmark: Benchmark, problem: Problem, number: int, code: str) -> Job:
    probe, tests = measure.probe(problem, code)
    task = task_of(benchmark, problem)
    limits = task.limits
    slower = replace(
        task,
        limits=replace(limits, cpu_s=SLOWER * limits.cpu_s, wall_s=SLOWER * limits.wall_s),
        imports=(*benchmark.imports, *measure.imports),
        alone=False,
    )
    return slower.make_job(Program(probe, measure.name), number, tests=tests)

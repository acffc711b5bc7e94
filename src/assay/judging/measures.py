"""Numbers besides pass@k: measures of programs that passed, and texts that fill a gap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from assay import scoring
from assay.formats.marks import middle_of
from assay.judging.job import task_of
from assay.progress import Reporter
from assay.runs import Result, RunReader
from assay.sandbox import Sandbox
from assay.scoring.estimates import MeasureScore, measure_score
from assay.types import Benchmark, Job, Measure, Problem, Program, SampleKey, Verdict

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
    programs: dict[str, list[str]] = defaultdict(list)
    for (task_id, _), code in judged.items():
        programs[task_id].append(code)
    return programs


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
    values = {
        task: [numbers.get((task, code)) for code in codes] for task, codes in programs.items()
    }
    clusters = {p.task_id: p.cluster for p in benchmark.problems if p.cluster}
    return measure_score(values, clusters)


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


def match_score(
    benchmark: Benchmark,
    run: RunReader,
    verdicts: Sequence[Verdict],
    clusters: Mapping[str, str],
) -> scoring.MatchScore | None:
    """Compare the generated middles with the missing code; None if the problems have no gaps."""
    gaps = {p.task_id: p for p in benchmark.problems if p.suffix is not None}
    if not gaps:
        return None
    valid = {verdict.key for verdict in verdicts if verdict.status != "invalid"}
    samples: dict[SampleKey, tuple[bool, float]] = {}  # of repeated samples the last one counts
    for completion in run.read_completions():
        problem = gaps.get(completion.task_id)
        if problem is not None and completion.key in valid:
            around = problem.prompt, problem.suffix or ""
            text, wanted = (middle_of(t, *around) for t in (completion.text, problem.reference))
            samples[completion.key] = is_exact_match(text, wanted), edit_similarity(text, wanted)
    by_task: dict[str, list[tuple[bool, float]]] = {task_id: [] for task_id in gaps}
    for (task_id, _), sample in samples.items():
        by_task[task_id].append(sample)
    return scoring.match_score(by_task, clusters)


def is_exact_match(text: str, expected: str) -> bool:
    """Return whether two texts are equal, except for white space at the ends of lines and texts.

    Indentation counts: in Python it has a meaning.
    """
    return normalise(text) == normalise(expected)


def edit_similarity(text: str, expected: str) -> float:
    """Return how similar two texts are, from 0 to 1, ignoring the same white space.

    It is twice the length of the longest common subsequence over the length of both texts, as
    ``ratio`` of rapidfuzz and fuzzywuzzy computes it.
    """
    first, second = normalise(text), normalise(expected)
    total = len(first) + len(second)
    return 2 * common_length(first, second) / total if total else 1.0


def normalise(text: str) -> str:
    """Return the text without empty lines around it and without white space at line ends."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def common_length(first: str, second: str) -> int:
    """Return the length of the longest common subsequence.

    Each bit of ``row`` is a place in the first text (Hyyrö 2004): a letter of the second text costs
    a few operations on long integers, 1 ms for two texts of 2,000 letters.
    """
    places: dict[str, int] = {}
    for at, letter in enumerate(first):
        places[letter] = places.get(letter, 0) | 1 << at
    every = (1 << len(first)) - 1
    row = every
    for letter in second:
        match = row & places.get(letter, 0)
        row = (row + match | row - match) & every
    return len(first) - row.bit_count()

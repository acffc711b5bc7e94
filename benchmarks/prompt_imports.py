"""Count the verdicts that depend on the imports and helpers of the prompt.

    python benchmarks/prompt_imports.py

Every raw text for HumanEval and HumanEval+ in ``$ASSAY_DATA_DIR/completions`` is turned into a
program. Those that lack a name which the prompt brings are judged twice by HumanEval's tests: with
the prompt's code before them, and alone, as EvalPlus judges answers of a chat. A text that
continues the prompt contains it and lacks nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from assay import benchmarks
from assay.cli._progress import ProgressDisplay
from assay.extract.python import find_bound_names, find_unbound_names
from assay.extract.workers import ExtractionRequest, Extractor
from assay.judging import references
from assay.pipeline.problems import surround
from assay.sandbox import Sandbox, open_sandbox
from assay.types import Benchmark, Job, Problem, Program, PromptImports, SampleKey
from extraction import Text, raw_texts

CHOICES: tuple[PromptImports, ...] = ("prepended", "none")


def programs(benchmark: Benchmark, texts: list[Text]) -> list[Program]:
    """Return the program in each text."""
    problems = {p.task_id: p for p in benchmark.problems}
    requests = (
        (None, ExtractionRequest(text.raw, problems[text.task_id], text.form)) for text in texts
    )
    with Extractor() as extractor:
        return [found.program for _, found in extractor.in_order(requests)]


def depends(program: Program, problem: Problem) -> bool:
    """Return whether a program may need code of the prompt, or an import that a rule added."""
    brought = find_bound_names(problem.tests.prompt_code)
    return bool(brought & find_unbound_names(program.code)) or "hints" in program.rule.split("+")


def passing(
    benchmark: Benchmark, found: dict[SampleKey, Program], judge: Sandbox
) -> set[SampleKey]:
    """Return the programs that pass. A key is a task and the number of the program."""
    with ProgressDisplay(benchmark.name, quiet=True) as display:
        benchmark = references.check(benchmark, judge, display).benchmark
    tests = {p.task_id: p.tests for p in benchmark.problems}
    jobs = (Job(*key, program, tests[key[0]], benchmark.limits) for key, program in found.items())
    return {verdict.key for verdict in judge.judge(jobs) if verdict.status == "pass"}


def compare() -> Iterator[tuple[str, int, int, Counter[PromptImports]]]:
    """Yield each set with its samples, the programs that lack something, and passes by choice."""
    whole = benchmarks.load("humaneval")
    sets = {label: texts for (label, _), texts in raw_texts(["humaneval", "humanevalplus"]).items()}
    lacking: dict[str, list[SampleKey]] = defaultdict(list)
    found: dict[str, dict[SampleKey, Program]] = {choice: {} for choice in CHOICES}
    surroundings = {choice: surround(whole, choice, "chat") for choice in CHOICES}
    problems = {p.task_id: p for p in whole.problems}
    for label, texts in sets.items():
        made = {choice: programs(surroundings[choice], texts) for choice in CHOICES}
        for index, text in enumerate(texts):
            if depends(made["prepended"][index], problems[text.task_id]):
                key = (text.task_id, len(found["none"]))
                lacking[label].append(key)
                for choice in CHOICES:
                    found[choice][key] = made[choice][index]
    judge = open_sandbox("process", 1)
    try:
        passed = {choice: passing(surroundings[choice], found[choice], judge) for choice in CHOICES}
    finally:
        judge.close()
    for label, texts in sets.items():
        counts = Counter({c: len(passed[c].intersection(lacking[label])) for c in CHOICES})
        yield label, len(texts), len(lacking[label]), counts


def main() -> None:
    """Print a row for each set."""
    print(f"{'samples':>8}{'lacking':>9}{'prepended':>11}{'none':>6}{'points':>8}  set")
    for label, samples, lacking, passed in compare():
        points = 100 * (passed["none"] - passed["prepended"]) / samples
        row = f"{samples:>8}{lacking:>9}{passed['prepended']:>11}{passed['none']:>6}"
        print(f"{row}{points:>8.1f}  {label}")


if __name__ == "__main__":
    main()

"""Put the imports and helpers of the prompt before a program, or leave them out."""

from __future__ import annotations

from dataclasses import replace

from assay.types import Benchmark, Problem, PromptForm, PromptImports, Tests

HINTS = "hints"  # the extraction rule that adds imports of typing


def surround(benchmark: Benchmark, choice: PromptImports, form: PromptForm) -> Benchmark:
    """Return the benchmark with the code that ``choice`` puts before its programs.

    With ``none`` a program that answers in a chat runs alone, and nothing is imported for it. A
    base model's text continues the prompt, so the prompt stays part of its program.
    """
    if choice == "prepended":
        return benchmark
    problems = (_without_hints(problem) for problem in benchmark.problems)
    if form == "chat":
        problems = (replace(p, tests=without_prompt_code(p.tests)) for p in problems)
    return replace(benchmark, problems=tuple(problems))


def without_prompt_code(tests: Tests) -> Tests:
    """Return the tests for programs that run alone.

    Separated tests keep the prompt's code, which they may call. Tests in the program's
    interpreter find there what the program itself brings.
    """
    if not tests.prompt_code:
        return tests
    code = tests.code
    if tests.integrity == "separated":
        code = f"{tests.prompt_code}\n{code}"
    preamble = tests.preamble.removesuffix(tests.prompt_code)
    return replace(tests, code=code, preamble=preamble, prompt_code="")


def _without_hints(problem: Problem) -> Problem:
    return replace(problem, without_rules=(*problem.without_rules, HINTS))

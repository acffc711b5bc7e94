"""Check a benchmark itself: its references, programs that solve nothing, and its prompts."""

from __future__ import annotations

import ast
import contextlib
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from assay.data import plain, text_cases
from assay.data.failures import explain_failure
from assay.errors import AssayError, UsageError
from assay.judging import judge_jobs, references, task_of
from assay.judging.references import CheckedBenchmark
from assay.pipeline.config import JudgeConfig
from assay.pipeline.judging import open_sandbox, report_python
from assay.pipeline.problems import select_problems
from assay.progress import Reporter
from assay.prompts import find_strategy, list_strategies
from assay.protocol import tests_digest
from assay.sandbox import Sandbox
from assay.types import Benchmark, Job, Problem, Program, Tests, Verdict

MOST_ROUNDS = 100
EMPTY, NONE = "empty", "none"
FUNCTION = "def {name}(*args, **kwargs):\n    return None\n"
CLASS = "class {name}:\n    def __getattr__(self, _):\n        return lambda *a, **k: None\n"
# Shorter bodies, such as "return x", also occur where nothing is given away.
LEAST_BODY = 20  # characters
MARKS = re.compile(r"^(>>>|\.\.\.)\s*")  # before code in examples
CANDIDATE = "candidate"  # the function's name in tests that take it as an argument
Pair = tuple[str, str]  # a call or an input, and what is expected
Severity = Literal["error", "warning"]

# An error makes scores wrong. A warning is to be looked at.
KINDS: dict[str, tuple[Severity, str]] = {
    "reference-fails": ("error", "the reference does not pass the tests"),
    "flaky": ("error", "the reference passes only sometimes"),
    "passes-empty": ("error", "an empty program passes"),
    "passes-none": ("error", "a function that only returns None passes"),
    "not-judged": ("error", "the sandbox could not judge a program"),
    "duplicate": ("error", "another problem has the same prompt and the same tests"),
    "reference-in-prompt": ("error", "the prompt contains the body of the reference"),
    "same-prompt": ("warning", "another problem has the same prompt and other tests"),
    "cases-in-prompt": ("warning", "the prompt shows every case of the tests with its result"),
    "unnamed-entry-point": ("warning", "the prompt does not name the function to write"),
}


@dataclass(frozen=True, slots=True)
class BenchmarkFinding:
    """Something that is wrong with a problem, or looks wrong."""

    kind: str
    task_id: str
    detail: str = ""

    @property
    def severity(self) -> Severity:
        return KINDS[self.kind][0]


@dataclass(frozen=True, slots=True)
class BenchmarkCheck:
    """The outcome of a check. References were judged ``repeat`` times."""

    benchmark: str
    version: str
    data_sha256: str
    problems: int
    references: int  # problems that have one
    references_passed: int  # every time
    shared: int  # problems whose tests share an interpreter with the program
    repeat: int
    findings: tuple[BenchmarkFinding, ...]

    @property
    def errors(self) -> int:
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def warnings(self) -> int:
        return len(self.findings) - self.errors


def check_benchmark(config: JudgeConfig, repeat: int, reporter: Reporter) -> BenchmarkCheck:
    """Return everything that is wrong with a benchmark, or looks wrong.

    Cached verdicts are not used.
    """
    config.check()
    if not 1 <= repeat <= MOST_ROUNDS:
        raise UsageError(f"--repeat {repeat}: must be at least 1 and at most {MOST_ROUNDS}.")
    benchmark = select_problems(config, reporter).benchmark
    with contextlib.closing(open_sandbox(config, benchmark, reporter)) as judge:
        report_python(config, benchmark, judge.capabilities(), reporter)
        checked = references.check(benchmark, judge, reporter, again=True)
        passed, failures = repeat_references(checked, judge, repeat, reporter)
        findings = [
            *_judge_references(passed, failures, repeat),
            *try_nothing(checked.benchmark, judge, reporter),
            *find_in_prompts(list_prompts(checked.benchmark)),
        ]
    problems = benchmark.problems
    order = {problem.task_id: number for number, problem in enumerate(problems)}
    kinds = list(KINDS)
    findings.sort(key=lambda one: (kinds.index(one.kind), order[one.task_id]))
    return BenchmarkCheck(
        benchmark=benchmark.name,
        version=benchmark.version,
        data_sha256=benchmark.data_sha256,
        problems=len(problems),
        references=sum(bool(problem.reference) for problem in problems),
        references_passed=sum(count == repeat for count in passed.values()),
        shared=sum(problem.tests.integrity == "shared" for problem in problems),
        repeat=repeat,
        findings=tuple(findings),
    )


def _judge_references(
    passed: dict[str, int], failures: dict[str, str], repeat: int
) -> Iterator[BenchmarkFinding]:
    for task_id, failure in failures.items():
        if count := passed.get(task_id, 0):
            detail = f"passed {count} of {repeat} times; {failure}"
            yield BenchmarkFinding("flaky", task_id, detail)
        else:
            yield BenchmarkFinding("reference-fails", task_id, failure)


def repeat_references(
    checked: CheckedBenchmark, judge: Sandbox, repeat: int, reporter: Reporter
) -> tuple[dict[str, int], dict[str, str]]:
    """Judge all references until each was judged ``repeat`` times. The first time is over.

    Return how often each reference passed, by task, and how it failed.

    Every round has another seed, for tests with random inputs.
    """
    benchmark = checked.benchmark
    problems = [p for p in benchmark.problems if p.reference and _is_complete(p.tests)]
    passed = {p.task_id: int(p.task_id not in checked.unscorable) for p in problems}
    failures = dict(checked.unscorable)
    jobs = [
        _job(benchmark, problem, sample, problem.reference, f"round {sample}")
        for sample in range(1, repeat)
        for problem in problems
    ]
    for done, verdict in enumerate(judge_jobs(judge, jobs), 1):
        reporter.preparing("judging the references again:", done, len(jobs))
        if verdict.status == "pass":
            passed[verdict.task_id] += 1
        else:
            failures.setdefault(verdict.task_id, f"{verdict.reason}: {explain_failure(verdict)}")
    judge.close()  # a worker that ran references never runs another program
    return passed, failures


def try_nothing(
    benchmark: Benchmark, judge: Sandbox, reporter: Reporter
) -> Iterator[BenchmarkFinding]:
    """Yield the problems that a program passes which solves nothing."""
    kinds: list[str] = []
    jobs: list[Job] = []
    for problem in benchmark.problems:
        if not _is_complete(problem.tests):
            continue
        for kind, code in ((EMPTY, ""), (NONE, none_program(problem.tests))):
            if code is not None:
                jobs.append(_job(benchmark, problem, len(jobs), code, ""))
                kinds.append(kind)
    findings: dict[int, BenchmarkFinding] = {}
    for done, verdict in enumerate(judge_jobs(judge, jobs), 1):
        reporter.preparing("judging programs that solve nothing:", done, len(jobs))
        if verdict.status != "fail":
            findings[verdict.sample] = _describe(kinds[verdict.sample], verdict)
    yield from dict.fromkeys(findings[number] for number in sorted(findings))


def _describe(kind: str, verdict: Verdict) -> BenchmarkFinding:
    if verdict.status == "pass":
        return BenchmarkFinding(f"passes-{kind}", verdict.task_id)
    return BenchmarkFinding("not-judged", verdict.task_id, f"{verdict.reason}: {verdict.detail}")


def none_program(tests: Tests) -> str | None:
    """Return a program that defines the entry point and returns None, or None without one."""
    name = tests.entry_point
    if tests.answer is not None or not name.isidentifier():
        return None
    is_class = bool(tests.adapter) and name[0].isupper()
    return (CLASS if is_class else FUNCTION).format(name=name)


def _is_complete(tests: Tests) -> bool:
    """Return whether it is known what the tests expect."""
    return tests.cases is None or bool(tests.cases.expected)


def _job(benchmark: Benchmark, problem: Problem, sample: int, code: str, seed: str) -> Job:
    return task_of(benchmark, problem).make_job(Program(code, "check"), sample, seed=seed)


def list_prompts(benchmark: Benchmark) -> Iterator[tuple[Problem, str]]:
    """Yield every problem with what a chat model is sent by its first strategy."""
    build = find_strategy(list_strategies(benchmark)[0], benchmark).build
    for problem in benchmark.problems:
        text = ""
        with contextlib.suppress(AssayError):  # problems that cannot be asked in a chat
            text = "\n".join(message.content for message in build(problem, "chat").messages)
        yield problem, text or problem.prompt


def find_in_prompts(prompts: Iterable[tuple[Problem, str]]) -> Iterator[BenchmarkFinding]:
    """Yield what is wrong with the prompts of a benchmark."""
    seen: dict[str, dict[str, str]] = {}  # by prompt: the first task with each digest of tests
    for problem, prompt in prompts:
        earlier = seen.setdefault(" ".join(prompt.split()), {})
        digest = tests_digest(problem.tests)
        if digest in earlier:
            yield BenchmarkFinding("duplicate", problem.task_id, f"the same as {earlier[digest]}")
        elif earlier:
            first = next(iter(earlier.values()))
            yield BenchmarkFinding("same-prompt", problem.task_id, f"the prompt of {first}")
        earlier.setdefault(digest, problem.task_id)
        if problem.tests.answer is not None:
            continue  # the prompt has the code that the answer is about
        if gives_reference(problem, prompt):
            yield BenchmarkFinding("reference-in-prompt", problem.task_id)
        if count := count_shown_cases(problem, prompt):
            yield BenchmarkFinding("cases-in-prompt", problem.task_id, f"{count} of {count}")
        name = problem.tests.entry_point
        if name and not re.search(rf"\b{re.escape(name)}\b", prompt):
            yield BenchmarkFinding("unnamed-entry-point", problem.task_id, name)


def gives_reference(problem: Problem, prompt: str) -> bool:
    """Return whether the lines of the reference's body are lines of the prompt, in one piece.

    White space around lines, comments and the marks of examples do not count.
    """
    body = _lines(_find_body(problem))
    if sum(map(len, body)) < LEAST_BODY:
        return False
    return _is_part(body, _lines(prompt))


def _find_body(problem: Problem) -> str:
    """Return what the reference adds to the prompt, or the body of its function."""
    reference, name = problem.reference, problem.tests.entry_point
    if reference.startswith(problem.prompt):
        return reference.removeprefix(problem.prompt)
    for node in _walk(reference):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if not body:
                return ""
            lines = reference.splitlines()
            return "\n".join(lines[body[0].lineno - 1 : body[-1].end_lineno])
    return reference


def count_shown_cases(problem: Problem, prompt: str) -> int:
    """Return the number of cases if the prompt shows all of them, and otherwise 0.

    A case is shown if its call (or its input) and its expected result are both in the prompt. Some
    shown cases are examples. If all are shown, a program that only knows the examples passes.
    """
    if problem.tests.is_script:
        return _count_shown_inputs(problem, _lines(prompt))
    squeezed = _squeeze(prompt)
    count = 0
    for call, expected in _list_calls(problem.tests):
        if not (call and call in squeezed and expected in squeezed):
            return 0
        count += 1
    return count


def _count_shown_inputs(problem: Problem, prompt: list[str]) -> int:
    pairs = text_cases.unpack(problem.tests.texts) if problem.tests.texts else []
    for text, expected in pairs:
        if not all(_is_part(lines, prompt) for lines in (_lines(text), _lines(expected))):
            return 0
    return len(pairs)


def _list_calls(tests: Tests) -> Iterator[Pair]:
    """Yield calls with their results. A test that is not such a call yields an empty one."""
    name = tests.entry_point
    if tests.texts or tests.adapter:
        yield "", ""
    elif tests.cases:
        for group, inputs in tests.cases.inputs.items():
            for arguments, expected in zip(
                inputs, tests.cases.expected.get(group, ()), strict=False
            ):
                yield _call(name, plain.decode(arguments)), _squeeze(repr(plain.decode(expected)))
    else:
        for node in _walk(tests.code):
            if isinstance(node, ast.Assert):
                yield _read_assertion(node, (name, CANDIDATE), name)


def _call(name: str, arguments: Any) -> str:
    if not isinstance(arguments, list):
        return ""
    return _squeeze(f"{name}({', '.join(map(repr, arguments))})")


def _read_assertion(node: ast.Assert, names: tuple[str, ...], name: str) -> Pair:
    match node.test:
        case ast.Compare(ast.Call(ast.Name(called), args), [ast.Eq()], [expected]):
            if called in names:
                with contextlib.suppress(RecursionError):  # a sum of 500 terms
                    call = f"{name}({', '.join(map(ast.unparse, args))})"
                    return _squeeze(call), _squeeze(ast.unparse(expected))
    return "", ""


def _walk(code: str) -> Iterator[ast.AST]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in a benchmark's code
            yield from ast.walk(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return


def _squeeze(text: str) -> str:
    """Return a text without white space and without the difference between quotes."""
    return "".join(text.split()).replace('"', "'")


def _lines(text: str) -> list[str]:
    lines = (MARKS.sub("", line.strip()) for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _is_part(part: list[str], whole: list[str]) -> bool:
    return "\n".join(["", *part, ""]) in "\n".join(["", *whole, ""])

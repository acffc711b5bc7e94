"""LeetCodeDataset: its 228 problems, methods as entry points, trees on the program's side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from assay import benchmarks, extract
from assay.benchmarks.leetcodedataset import ENVIRONMENT, LIMITS
from assay.benchmarks.support.program_code import with_named_arguments
from assay.errors import SandboxError
from assay.prompts import strategies
from assay.sandbox import Sandbox, open_sandbox
from assay.sandbox.environments import store
from assay.types import Benchmark, Job, Problem, Program, Verdict
from tests.security.corpus import CORPUS

TREE = "k-th-largest-perfect-subtree-size-in-binary-tree"
FIRST = "shortest-distance-after-road-addition-queries-i"


@pytest.fixture(scope="module")
def leetcode(_environment: None) -> Benchmark:
    return benchmarks.load("leetcodedataset")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    try:
        store.find(ENVIRONMENT)
    except SandboxError as error:
        pytest.skip(str(error))
    opened = open_sandbox("process", 2)
    yield opened
    opened.close()


def find(benchmark: Benchmark, task_id: str) -> Problem:
    return next(p for p in benchmark.problems if p.task_id == task_id)


def judged(sandbox: Sandbox, benchmark: Benchmark, problem: Problem, code: str) -> Verdict:
    (verdict,) = sandbox.judge(
        [
            Job(
                problem.task_id, 0, Program(code, "x"), problem.tests, LIMITS, benchmark.imports,
                ENVIRONMENT,
            )
        ]
    )  # fmt: skip
    return verdict


@pytest.mark.slow
def test_problems_are_dated_clustered_and_separated(leetcode: Benchmark) -> None:
    assert len(leetcode.problems) == 228
    dates = [problem.date or "" for problem in leetcode.problems]
    assert (min(dates), max(dates)) == ("2024-08-04", "2025-03-30")
    assert {problem.tests.integrity for problem in leetcode.problems} == {"separated"}
    levels = Counter(problem.labels["difficulty"] for problem in leetcode.problems)
    assert levels == {"easy": 48, "medium": 101, "hard": 79}
    assert find(leetcode, FIRST).cluster == "shortest-distance-after-road-addition-queries"
    assert len({problem.cluster for problem in leetcode.problems}) < 228
    cases = [p.tests.cases for p in leetcode.problems if p.tests.cases]
    assert sum(len(one.inputs["cases"]) for one in cases) == 23_234


@pytest.mark.whole
def test_all_references_pass(leetcode: Benchmark, sandbox: Sandbox) -> None:
    jobs = [
        Job(p.task_id, 0, Program(p.reference, "x"), p.tests, LIMITS, leetcode.imports, ENVIRONMENT)
        for p in leetcode.problems
    ]
    failed = [verdict for verdict in sandbox.judge(jobs) if verdict.status != "pass"]
    assert not failed


@pytest.mark.slow
def test_some_references_pass(leetcode: Benchmark, sandbox: Sandbox) -> None:
    some = [find(leetcode, TREE), *leetcode.problems[::40]]
    some.append(find(leetcode, "find-x-sum-of-all-k-long-subarrays-i"))  # sortedcontainers
    for problem in some:
        verdict = judged(sandbox, leetcode, problem, problem.reference)
        assert verdict.status == "pass", verdict
        assert verdict.integrity == "separated"


@pytest.mark.slow
def test_trees_are_built_in_the_programs_process(leetcode: Benchmark, sandbox: Sandbox) -> None:
    problem = find(leetcode, TREE)
    assert "'root': 'tree_node'" in problem.tests.adapter
    looks = problem.reference.replace(
        "class Solution:",
        "class Solution:\n    def __getattribute__(self, name):\n"
        "        return object.__getattribute__(self, name)\n",
    )
    assert judged(sandbox, leetcode, problem, looks).status == "pass"
    own_nodes = (
        "class TreeNode:\n    def __init__(self, val=0, left=None, right=None):\n"
        "        self.val, self.left, self.right = val, left, right\n\n" + problem.reference
    )
    assert judged(sandbox, leetcode, problem, own_nodes).status == "pass"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("class Solution:\n    def METHOD(self, n, queries): return []", "wrong-answer"),
        ("class Solution:\n    def METHOD(self, a, b): return []", "exception"),
        ("class Solution:\n    pass", "exception"),
        ("def METHOD(n, queries): return []", "exception"),
        ("class Solution:\n    def METHOD(self, n, queries):\n        while 1: pass", "timeout"),
        ("import sys; sys.exit(0)", "exit"),
    ],
)  # fmt: skip
def test_wrong_programs_fail(leetcode: Benchmark, sandbox: Sandbox, code: str, reason: str) -> None:
    code = code.replace("METHOD", "shortestDistanceAfterQueries")
    verdict = judged(sandbox, leetcode, find(leetcode, FIRST), code)
    assert (verdict.status, verdict.reason) == ("fail", reason), verdict


@pytest.mark.slow
def test_forged_programs_fail(leetcode: Benchmark, sandbox: Sandbox) -> None:
    """Every fifth of the corpus, with its function as the method."""
    problem = find(leetcode, FIRST)
    methods = (
        "\nclass Solution:\n    def shortestDistanceAfterQueries(self, n, queries):\n"
        "        return running_total(queries)\n"
    )
    jobs = [
        Job(f.name, 0, Program(f.code + methods, "x"), problem.tests, LIMITS, (), ENVIRONMENT)
        for f in CORPUS[::40]
    ]
    for verdict in sandbox.judge(jobs):
        assert verdict.status == "fail", verdict


@pytest.mark.slow
def test_prompts_and_answers(leetcode: Benchmark) -> None:
    problem = find(leetcode, FIRST)
    (message,) = strategies.get("standard").build(problem, "chat").messages
    assert message.content.startswith("You are an expert Python programmer.")
    answer = f"Here:\n```python\n{problem.reference}```\nIt works.\n"
    assert extract.extract(answer, problem, "chat").code.strip() == problem.reference.strip()
    stub = (
        "class Solution:\n    def shortestDistanceAfterQueries(self, n, queries):\n        pass\n"
    )
    twice = f"```python\n{stub}\n{problem.reference}```\n"
    assert "def bfs" in extract.extract(twice, problem, "chat").code
    begun = strategies.get("standard").build(problem, "text").text
    assert begun.rstrip().endswith("-> List[int]:")
    found = extract.extract("        return [0]\n", problem, "text")
    assert found.code.rstrip().endswith("return [0]")


def test_the_adapter_calls_by_name() -> None:
    space: dict[str, object] = {}
    code = "class Solution:\n    def f(self, a, b): return a - b\ndouble = lambda x: 2 * x\n"
    exec(code + with_named_arguments("f", ("b", "a"), {"a": "double"}), space)
    assert space["__adapted__"](1, 5) == 9  # type: ignore[operator]

"""Tests in a process apart: what they see of a program, and what they say of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from assay.benchmarks.support import evalplus
from assay.data import plain
from assay.data.failures import explain_failure
from assay.sandbox import Sandbox, open_sandbox
from assay.types import Cases, Job, Limits, Program, Tests, Verdict
from tests.security.in_tiers import STRONGEST

MATCHER = "def matcher():\n    return lambda arguments, expected, got: got == expected\n"


@pytest.fixture(
    scope="module", params=[STRONGEST, pytest.param("landlock", marks=pytest.mark.slow)]
)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    try:
        opened = open_sandbox("process", 2, request.param)
    except Exception as error:
        pytest.skip(f"tier {request.param}: {error}")
    yield opened
    opened.close()


def judged(sandbox: Sandbox, code: str, tests: Tests, **limits: Any) -> Verdict:
    (verdict,) = sandbox.judge([Job("t", 0, Program(code, "x"), tests, Limits(**limits))])
    return verdict


def asserted(sandbox: Sandbox, code: str, tests: str, preamble: str = "", **limits: Any) -> Verdict:
    apart = Tests("f", tests, preamble, "separated")
    return judged(sandbox, code, apart, **limits)


def cases(
    inputs: dict[str, list[Any]], expected: dict[str, list[Any]], matcher: str = MATCHER
) -> Tests:
    encoded = Cases(
        {g: [plain.encode(a) for a in calls] for g, calls in inputs.items()},
        {g: [plain.encode(v) for v in values] for g, values in expected.items()},
        digest=repr((inputs, expected)),
    )
    return Tests("f", matcher, "", "separated", encoded)


INPUTS = {"base": [[1], [2]], "plus": [[3], [4], [5]]}
EXPECTED = {"base": [2, 3], "plus": [4, 5, 6]}


@pytest.mark.parametrize(
    ("code", "tests"),
    [
        ("def f(x): return x + 1", "assert f(1) == 2"),
        ("def f(x): return x + 1", "for x in range(200):\n    assert f(x) == x + 1"),
        ("def f(x): return [x, (x, {x})]", "assert f(1) == [1, (1, {1})]"),
        ("def f(*a, k=0): return (*a, k)", "assert f(1, 2, k=3) == (1, 2, 3)"),
        ("def f(n): yield from range(n)", "assert list(f(3)) == [0, 1, 2]"),
        ("calls = []\ndef f(x): calls.append(x); return len(calls)", "assert f(1) + f(1) == 3"),
        ("def f(x): raise ValueError('no')", "try:\n    f(1)\nexcept ValueError:\n    pass"),
        ("print('noise')\ndef f(x): print(x); return x", "assert f(1) == 1"),
        ("f = lambda x: helper(x)", "assert f(2) == helper(2)"),
        # the order of a set depends on how it was made
        ("f = list", "assert f({12, 13, 14, 15, 16}) == list({12, 13, 14, 15, 16})"),
    ],
)
def test_honest_programs_pass(sandbox: Sandbox, code: str, tests: str) -> None:
    verdict = asserted(sandbox, code, tests, "def helper(x): return x * 2")
    assert (verdict.status, verdict.integrity) == ("pass", "separated"), verdict


@pytest.mark.parametrize(
    ("code", "reason", "detail"),
    [
        ("def f(x): return x", "wrong-answer", "f(1) gave 1"),
        ("def f(x): return x / 0", "exception", "ZeroDivisionError: division by zero (line 1"),
        ("def g(x): return x", "exception", "name 'f' is not defined"),
        ("f = = 1", "syntax", "SyntaxError"),
        ("import nothing_there", "exception", "ModuleNotFoundError"),
        ("def f(x):\n    while True: pass", "timeout", "1 s of CPU time"),
        ("def f(x): raise SystemExit", "exit", "SystemExit"),
        ("def f(x):\n    import os; os._exit(0)", "exit", "exit code 0"),
        ("def f(x): return 'x' * 10**10", "memory", "MemoryError"),
        ("def f(x): open('/etc/x', 'w')", "forbidden", "(line 1 of the program)"),
        (
            "import os\ndef f(x): os.write(4, b'no answer of ours')",
            "exit",
            "tests were done",
        ),
        ("def f(x): return lambda: x", "wrong-answer", "gave <function>"),
    ],
)
def test_the_reason_is_told(sandbox: Sandbox, code: str, reason: str, detail: str) -> None:
    verdict = asserted(sandbox, code, "assert f(1) == 2", cpu_s=1, wall_s=5)
    assert (verdict.status, verdict.reason) == ("fail", reason), verdict
    assert detail in explain_failure(verdict)


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos._exit(0)",
        "def f(x):\n    import os; os._exit(0)",
        "f = = 1",
        "raise ValueError",
    ],
)
def test_tests_that_catch_everything_do_not_catch_the_end(sandbox: Sandbox, code: str) -> None:
    tests = "try:\n    f(1)\nexcept:\n    pass\ntry:\n    f(2)\nexcept BaseException:\n    pass\n"
    assert asserted(sandbox, code, tests).status == "fail"


LOOPS = (
    "for value in map(f, [1, 2]):\n    assert value == 7",
    "assert all(map(f, [1, 2]))",
    "assert not any(filter(f, [1, 2]))",
    "assert [a == b for a, b in zip(map(f, [1, 2]), [7, 7])].count(False) == 0",
    "from itertools import takewhile\nassert not list(takewhile(f, [1, 2]))",
    "assert not list(iter(lambda: f(1), 7))",
    "seen = [7 for x in map(f, [1])]\nassert seen == [] or f(1) == 7",
    "def check(c):\n    for value in map(c, [1, 2]):\n        assert value == 7\ncheck(f)",
    "try:\n    f(1)\nexcept (RuntimeError, ValueError, LookupError, AssertionError):\n    pass",
)
STEERING = (*sorted(plain.STEERING), "type('StopIteration', (StopIteration,), {})")


@pytest.mark.parametrize("raised", STEERING)
def test_no_exception_of_a_program_steers_the_tests(sandbox: Sandbox, raised: str) -> None:
    """A StopIteration that reaches the tests ends map and filter, and the program passes."""
    code = f"def f(x):\n    raise {raised}(x)"
    tests = [Tests("f", loop, "", "separated") for loop in LOOPS]
    jobs = [Job(t.code, 0, Program(code, "x"), t) for t in tests]
    verdicts = list(sandbox.judge(jobs))
    assert len(verdicts) == len(LOOPS)
    assert [(v.task_id, v.status, v.detail) for v in verdicts if v.status != "fail"] == []
    assert {v.reason for v in verdicts} <= {"exception", "exit"}


def test_the_failing_test_is_told(sandbox: Sandbox) -> None:
    tests = "assert f(1) == 1\nassert f(2) == 3\nassert f(3) == 3\n"
    assert asserted(sandbox, "def f(x): return x", tests).failing_test == "assert f(2) == 3"


@pytest.mark.parametrize(
    "tests", ["assert f(print) is None", "assert True", "def check(: pass", "raise KeyError"]
)
def test_tests_that_do_not_fit_are_our_failure(sandbox: Sandbox, tests: str) -> None:
    verdict = asserted(sandbox, "def f(x): return None", tests)
    expected = ("fail", "exception") if "raise" in tests else ("invalid", "sandbox-error")
    assert (verdict.status, verdict.reason) == expected


def test_nothing_of_a_program_is_there_for_the_next(sandbox: Sandbox) -> None:
    first = "import builtins, math\nbuiltins.leak = math.leak = 1\ndef f(x): return 1"
    second = "import builtins, math\ndef f(x): return hasattr(builtins, 'leak')"
    assert asserted(sandbox, first, "assert f(1) == 1").status == "pass"
    assert asserted(sandbox, second, "assert f(1) == False").status == "pass"


def test_cases_are_counted_by_group(sandbox: Sandbox) -> None:
    right = judged(sandbox, "def f(x): return x + 1", cases(INPUTS, EXPECTED))
    assert right.status == "pass"
    assert right.groups == {"base": (2, 2), "plus": (3, 3)}
    wrong = judged(sandbox, "def f(x): return min(x + 1, 5)", cases(INPUTS, EXPECTED))
    assert (wrong.status, wrong.reason) == ("fail", "wrong-answer")
    assert wrong.groups == {"base": (2, 2), "plus": (2, 3)}
    assert wrong.failing_test == "f(5)"
    assert (wrong.call, wrong.expected, wrong.actual) == ("f(5)", "6", "5")
    assert (wrong.detail, explain_failure(wrong)) == ("", "expected 6, got 5")


@pytest.mark.parametrize(
    ("expected", "code", "detail"),
    [
        (0.3, "0.1 + 0.2", "expected 0.3, got 0.30000000000000004"),
        ([*range(99)], "[*range(98), 7]", " (at [98]: 98, 7)"),
        ([[0] * 99, [1, 2]], "[[0] * 99, [1, 3]]", " (at [1][1]: 2, 3)"),
        ([0] * 999, "[0] * 998", " (998 items instead of 999)"),
        ([[0] * 999], "[[0] * 998]", " (998 items instead of 999 at [0])"),
        ("a" * 999, "'a' * 499 + 'b' * 500", f"(at [499]: {'a' * 20!r}, {'b' * 20!r})"),
    ],
)  # fmt: skip
def test_the_detail_shows_what_differs(
    expected: Any, code: str, detail: str, sandbox: Sandbox
) -> None:
    tests = cases({"base": [[0]]}, {"base": [expected]})
    wrong = judged(sandbox, f"def f(x): return {code}", tests)
    assert wrong.reason == "wrong-answer"
    assert explain_failure(wrong).endswith(detail), wrong


@pytest.mark.parametrize(("expected", "actual"), [("1, got 2", "2"), ("1", "x, got 1 (y)")])
def test_a_value_with_the_words_of_a_verdict_is_one_value(
    expected: str, actual: str, sandbox: Sandbox
) -> None:
    code = f"def f(x): return {actual!r}"
    wrong = judged(sandbox, code, cases({"base": [[0]]}, {"base": [expected]}))
    assert (wrong.call, wrong.expected, wrong.actual) == ("f(0)", repr(expected), repr(actual))
    asserting = asserted(sandbox, code, f"assert f(0) == {expected!r}, 'f(1) gave 2'")
    assert (asserting.call, asserting.actual) == ("f(0)", repr(actual))
    assert asserting.detail == "AssertionError: f(1) gave 2"


def test_a_program_cannot_say_what_was_compared(sandbox: Sandbox) -> None:
    """What it raises stays its own text, whatever the words."""
    forged = "def f(x): raise AssertionError('expected 1, got 1: f(1) gave 1')"
    separated = judged(sandbox, forged, cases({"base": [[0]]}, {"base": [1]}))
    shared = judged(sandbox, forged, Tests("f", "assert f(1) == 1"))
    for verdict in (separated, shared):
        assert verdict.detail.startswith("AssertionError: expected 1, got 1: f(1) gave 1 (line 1")
        assert (verdict.expected, verdict.actual, verdict.input) == (None, None, None)
        assert explain_failure(verdict) == verdict.detail
    assert (separated.call, shared.call) == ("f(0)", None)


def test_a_value_that_is_equal_and_wrong_says_why(sandbox: Sandbox) -> None:
    """A task may compare in its own way, and can say what it looks at."""
    never = "def matcher():\n    return lambda arguments, expected, got: False\n"
    explained = never + "def explain(arguments, expected, got):\n    return f'{got / 2} is odd'\n"
    for matcher, returned, detail in (
        (never, "1.5", "expected 1.5, got 1.5 (the task's own comparison does not accept it)"),
        (explained, "3", "1.5 is odd"),
        (explained, "'3'", "expected 1.5, got '3'"),
    ):
        tests = cases({"base": [[0]]}, {"base": [1.5]}, matcher)
        wrong = judged(sandbox, f"def f(x): return {returned}", tests)
        assert explain_failure(wrong) == detail


def test_an_end_in_the_midst_keeps_what_was_right(sandbox: Sandbox) -> None:
    code = "import os\ndef f(x): return x + 1 if x < 4 else os._exit(0)"
    verdict = judged(sandbox, code, cases(INPUTS, EXPECTED))
    assert (verdict.status, verdict.reason) == ("fail", "exit")
    assert verdict.groups["base"] == (2, 2)


def test_a_call_has_a_limit_of_its_own(sandbox: Sandbox) -> None:
    code = "def f(x):\n    while x == 4:\n        try: pass\n        except: pass\n    return x + 1"
    verdict = judged(sandbox, code, cases(INPUTS, EXPECTED), call_cpu_s=0.3)
    assert (verdict.status, verdict.reason) == ("fail", "timeout"), verdict
    assert verdict.failing_test == "f(4)"
    assert verdict.cpu_s < 3
    assert verdict.groups == {"base": (2, 2), "plus": (1, 3)}


@pytest.mark.slow
def test_a_failed_program_is_called_on_as_if_it_had_not_failed(sandbox: Sandbox) -> None:
    """If a failed program is ended, one that still runs knows that its answers were right."""
    inputs = {"base": [[n] for n in range(4)], "plus": [[n] for n in range(4, 40)]}
    expected = {group: [x + 1 for (x,) in calls] for group, calls in inputs.items()}
    works = "import time\ndef work(s):\n    end = time.process_time() + s\n"
    works += "    while time.process_time() < end: pass\n"
    slow = works + "def f(x):\n    work(0.06)\n    return x + (x != 1)"
    verdict = judged(sandbox, slow, cases(inputs, expected))
    assert (verdict.status, verdict.failing_test) == ("fail", "f(1)")
    assert verdict.groups == {"base": (3, 4), "plus": (36, 36)}


def test_a_wrong_answer_before_an_endless_call_is_the_reason(sandbox: Sandbox) -> None:
    """The reason must not depend on how soon the endless call begins."""
    code = "def f(x):\n    while x == 2: pass\n"
    found = asserted(sandbox, code, "assert f(1) == 1\nassert f(2) == 2", cpu_s=0.5)
    assert (found.status, found.reason) == ("fail", "wrong-answer")
    endless_first = "def f(x):\n    while x == 1: pass\n"
    found = asserted(sandbox, endless_first, "assert f(1) == 1\nassert f(2) == 2", cpu_s=0.5)
    assert (found.status, found.reason) == ("fail", "timeout")


def test_a_program_that_belies_its_time_gains_nothing(sandbox: Sandbox) -> None:
    for lie in ("'no number'", "float('nan')", "-1e300", "10 ** 400", "None"):
        code = f"import time\ntime.process_time = lambda: {lie}\ndef f(x): return x"
        verdict = judged(sandbox, code, cases(INPUTS, EXPECTED))
        assert verdict.status == "fail", lie
        assert verdict.reason in ("wrong-answer", "exit"), lie


def test_a_reference_gives_the_expected_outputs(sandbox: Sandbox) -> None:
    unexpected = cases(INPUTS, {})
    job = Job("t", 0, Program("def f(x): return (x, 'x' * x * 50_000)", "x"), unexpected)
    ((verdict, found),) = sandbox.outputs([job])
    assert verdict.status == "pass"
    assert found is not None
    assert plain.decode(found.expected["base"][0]) == (1, "x" * 50_000)
    assert plain.decode(found.expected["plus"][2]) == (5, "x" * 250_000)
    assert "large" in found.expected["plus"][2]
    failing = Job("t", 0, Program("def f(x): return 1 / (x - 3)", "x"), unexpected)
    ((verdict, found),) = sandbox.outputs([failing])
    assert (verdict.status, verdict.reason, found) == ("fail", "exception", None)


EVALPLUS = evalplus.MATCHER.replace("ATOL", "0").replace("SAME", "got == expected")
LARGE = {
    "floats": "[n / 10 for n in range(100_000)]",
    "complex numbers": "[complex(n, 1) for n in range(100_000)]",
    "exact numbers": "[Fraction(n, 3) if n % 2 else Decimal(n) for n in range(100_000)]",
    "zeros": "[n * 0.0 for n in range(100_000)]",
}


@pytest.mark.slow
@pytest.mark.parametrize("values", LARGE.values(), ids=LARGE.keys())
def test_large_values_compare_as_small_ones_do(sandbox: Sandbox, values: str) -> None:
    """Large values cross as digests, which must be equal wherever the values are."""
    imports = "from decimal import Decimal\nfrom fractions import Fraction\n"
    tests = cases({"base": [[1]]}, {}, EVALPLUS)
    reference = f"{imports}def f(x): return {values}"
    ((_, found),) = sandbox.outputs([Job("t", 0, Program(reference, "x"), tests)])
    assert found is not None
    tests = replace(tests, cases=found)
    right = reference.replace("n / 10", "n * 0.1").replace("n * 0.0", "n * -0.0")
    assert judged(sandbox, reference, tests).status == "pass"
    assert judged(sandbox, right, tests).status == "pass"
    for wrong in (f"{reference}[1:]", f"{reference} + [1.5]", f"{reference}[:-1] + [9]"):
        assert judged(sandbox, wrong, tests).status == "fail"


def test_an_infinity_is_expected_alone(sandbox: Sandbox) -> None:
    """A tolerance relative to an infinity accepts every float."""
    tests = cases({"base": [[1], [2]]}, {"base": [float("inf"), [float("-inf")]]}, EVALPLUS)
    right = "def f(x): return float('inf') if x == 1 else [-float('inf')]"
    assert judged(sandbox, right, tests).status == "pass"
    verdict = judged(sandbox, "def f(x): return 0.5 if x == 1 else [0.5]", tests)
    assert (verdict.reason, verdict.groups) == ("wrong-answer", {"base": (0, 2)})


HUGE = {
    "range": "f = lambda x: range(10 ** 12)",
    "Decimal": "from decimal import Decimal\nf = lambda x: Decimal('1E+999999999')",
    "deques": "from collections import deque\nf = lambda x: [deque()] * 200_000",
    # Encoded as what they say they are: the other side computes it, or does not.
    "forged Decimal": "class Decimal:\n    __module__ = 'decimal'\n"
    "    def __str__(self): return '1E+999999999'\ndef f(x): return Decimal()",
    "forged Fraction": "class Fraction:\n    __module__ = 'fractions'\n"
    "    def __str__(self): return '1e999999999'\ndef f(x): return Fraction()",
}


@pytest.mark.parametrize("code", HUGE.values(), ids=HUGE.keys())
def test_an_answer_that_would_be_huge_is_a_failure(sandbox: Sandbox, code: str) -> None:
    """A small message must not become a huge value in the tests' process."""
    tests = "assert len({int(item) for item in list(f(1))}) == 1\n"
    verdict = asserted(sandbox, code, tests, cpu_s=5, wall_s=20)
    assert (verdict.status, verdict.reason) in (("fail", "exit"), ("fail", "exception")), verdict
    assert asserted(sandbox, "def f(x): return [1]", tests).status == "pass"

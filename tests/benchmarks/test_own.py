"""Benchmarks of users' own: what a file may say, and that mistakes are listed with their lines."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay import benchmarks
from assay.benchmarks.own import settings
from assay.benchmarks.own.file import read_own
from assay.benchmarks.own.problems import KEYS
from assay.benchmarks.own.settings import COMPARISONS
from assay.data import plain, text_cases
from assay.errors import AssayError, MistakesError, UsageError
from assay.sandbox.environments.store import RECIPES
from assay.sandbox.inside.judging.scripts import COMPARISONS as KNOWN_COMPARISONS
from assay.types import Benchmark, Limits
from tests.conftest import Cli

WORDS = ("args", "expected", "input", "output", "task_id", "tests", "a=b", "cpu_s")
ADD = 'def add(a: int, b: int) -> int:\n    """Return the sum of a and b."""\n'
PROBLEM = {"prompt": ADD, "entry_point": "add", "cases": [{"args": [1, 2], "expected": 3}]}
GOOD = """\
name: toys
version: 2
licence: MIT
description: Three kinds of tests.
system: Be brief.
comparison: tolerant
tolerance: 1e-6
limits: {cpu_s: 40, memory_mb: 256}
problems:
  - prompt: |
      import math
      def area(r: float) -> float:
          \"\"\"Return the area of a circle.\"\"\"
    entry_point: area
    cases:
      - area(0) == 0
      - {args: [1], expected: 3.14159265}
    reference: return math.pi * r * r
    date: 2024-08-01
    labels: {difficulty: easy, year: 2024}
    cluster: circles
  - task_id: double
    prompt: Read a line and print it twice.
    stdin:
      - {input: "a\\n", output: "a\\na\\n"}
    reference: |
      text = input()
      print(text)
      print(text)
  - task_id: apply
    prompt: Write a function apply(f, x) that returns f(x).
    entry_point: apply
    tests: |
      assert apply(lambda x: x + 1, 2) == 3
    reference: |
      def apply(f, x):
          return f(x)
"""


# A number that is as close to everything as a comparison asks.
EQUAL = """\
class Equal(float):
    __eq__ = __le__ = __ge__ = lambda self, other: True
    __sub__ = __rsub__ = lambda self, other: 0.0
"""


def write(folder: Path, text: str | bytes, name: str = "mine.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def write_lines(folder: Path, *problems: dict[str, Any], name: str = "mine.jsonl") -> Path:
    return write(folder, "".join(f"{json.dumps(one)}\n" for one in problems), name)


def mistakes_of(path: Path) -> list[str]:
    with pytest.raises(MistakesError) as caught:
        benchmarks.load(str(path))
    assert isinstance(caught.value, UsageError)
    return list(caught.value.problems)


def judge(benchmark: Benchmark, *programs: tuple[str, str]) -> list[str]:
    return [verdict.status for verdict in assay.judge(programs, benchmark, workers=1)]


def test_a_file_says_everything_about_a_benchmark(tmp_path: Path) -> None:
    found = benchmarks.load(str(write(tmp_path, GOOD)))
    area, double, apply = found.problems
    assert (found.name, found.version) == ("toys", "2")
    assert found.limits == Limits(cpu_s=40.0, memory_mb=256, wall_s=50.0)
    assert [problem.task_id for problem in found.problems] == ["toys/0", "double", "apply"]
    assert area.reference.endswith("    return math.pi * r * r")
    assert (area.date, area.cluster) == ("2024-08-01", "circles")
    assert area.labels == {"difficulty": "easy", "year": "2024"}
    assert {problem.system for problem in found.problems} == {"Be brief."}
    assert area.tests.preamble == "import math"
    assert area.begun == ""  # a base model continues the prompt itself
    assert double.begun == '"""\nRead a line and print it twice.\n"""\n\n'
    assert area.tests.integrity == double.tests.integrity == "separated"
    assert apply.tests.integrity == "shared"
    assert area.tests.cases is not None
    assert area.tests.cases.expected == {"cases": [0, 3.14159265]}
    assert double.tests.texts is not None
    assert double.tests.texts.comparison == "tolerant"
    assert text_cases.unpack(double.tests.texts) == [("a\n", "a\na\n")]


def test_programs_are_judged_by_all_kinds_of_tests(tmp_path: Path) -> None:
    found = benchmarks.load(str(write(tmp_path, GOOD)))
    references = [(problem.task_id, problem.reference) for problem in found.problems]
    empty = [(problem.task_id, "") for problem in found.problems]
    right = [
        ("toys/0", "def area(r):\n    return 3.1415926 * r * r\n"),  # within the tolerance
        ("double", "x = input()\nprint(x.upper())\nprint(x)\n"),  # as a tolerant comparison sees it
    ]
    wrong = [
        ("toys/0", "def area(r):\n    return 3.141 * r * r\n"),
        ("toys/0", "def area(r):\n    return float('nan')\n"),
        ("toys/0", f"{EQUAL}def area(r):\n    return Equal(3)\n"),
        ("double", "print('A ')\nprint('b')\n"),
    ]
    statuses = judge(found, *references, *right, *empty, *wrong)
    assert statuses == ["pass"] * 5 + ["fail"] * 7


def test_the_choices_are_those_of_the_sandbox() -> None:
    assert set(settings.ENVIRONMENTS) == set(RECIPES)
    assert set(COMPARISONS) == set(KNOWN_COMPARISONS)


def test_problems_can_be_lines_of_a_file(tmp_path: Path) -> None:
    lines = write_lines(tmp_path, PROBLEM, PROBLEM)
    alone = benchmarks.load(str(lines))
    assert (alone.name, len(alone.problems)) == ("mine", 2)
    named = write(tmp_path, "name: named\nproblems: mine.jsonl\n")
    found = benchmarks.load(str(named))
    assert (found.name, found.problems[1].task_id) == ("named", "named/1")
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(lines.read_bytes()))
    assert len(benchmarks.load(str(packed)).problems) == 2


def test_the_digest_is_of_all_files(tmp_path: Path) -> None:
    lines, named = write_lines(tmp_path, PROBLEM), write(tmp_path, "problems: mine.jsonl\n")
    first = benchmarks.load(str(named)).data_sha256
    assert benchmarks.load(str(named)).data_sha256 == first
    write_lines(tmp_path, PROBLEM, PROBLEM)
    second = benchmarks.load(str(named)).data_sha256
    named.write_text("problems: mine.jsonl\nlicence: MIT\n")
    digests = {first, second, benchmarks.load(str(named)).data_sha256}
    assert len(digests | {benchmarks.load(str(lines)).data_sha256}) == 4


def test_expected_values_can_come_from_the_reference(tmp_path: Path) -> None:
    cases = [{"args": [1, 2]}, {"args": [4, 5]}]
    path = write_lines(tmp_path, {**PROBLEM, "cases": cases, "reference": "    return a + b\n"})
    found = benchmarks.load(str(path))
    programs = ("def add(a, b):\n    return b + a\n", "def add(a, b):\n    return 3\n")
    assert judge(found, *(("mine/0", code) for code in programs)) == ["pass", "fail"]


def test_cases_as_expressions_have_python_values(tmp_path: Path) -> None:
    text = f"problems:\n  - prompt: Write f(x).\n    entry_point: f\n    cases:\n      - {CASE}\n"
    (problem,) = benchmarks.load(str(write(tmp_path, text))).problems
    assert problem.tests.cases is not None
    assert plain.decode(problem.tests.cases.inputs["cases"][0]) == [(1, 2), {3}, {4: None}]
    assert plain.decode(problem.tests.cases.expected["cases"][0]) == (-1.5, b"x")


CASE = "'assert f((1, 2), {3}, {4: None}) == (-1.5, b\"x\")'"


@pytest.mark.parametrize(
    ("reference", "whole"),
    [
        ("    return a + b\n", f"{ADD}    return a + b\n"),
        ("return a + b", f"{ADD}    return a + b"),  # a YAML block has lost its indentation
        ("a += b\nprint(a)", f"{ADD}    a += b\n    print(a)"),
        ("def add(a, b):\n    return a + b\n", "def add(a, b):\n    return a + b\n"),
        ("from operator import add", "from operator import add"),
        ("add = lambda a, b: a + b", "add = lambda a, b: a + b"),
    ],
)  # fmt: skip
def test_a_reference_is_a_program_or_the_rest_of_one(
    reference: str, whole: str, tmp_path: Path
) -> None:
    path = write_lines(tmp_path, {**PROBLEM, "reference": reference})
    assert benchmarks.load(str(path)).problems[0].reference == whole


def test_a_file_in_the_form_of_humaneval_is_judged_as_humaneval(
    tmp_path: Path, shared_data: Path
) -> None:
    shutil.copy(shared_data / "humaneval" / "HumanEval.jsonl.gz", tmp_path / "copy.jsonl.gz")
    own, built_in = benchmarks.load(str(tmp_path / "copy.jsonl.gz")), benchmarks.load("humaneval")
    assert [problem.tests.integrity for problem in own.problems] == ["separated"] * 164
    for mine, theirs in zip(own.problems, built_in.problems, strict=True):
        assert (mine.task_id, mine.prompt) == (theirs.task_id, theirs.prompt)
        assert mine.reference.strip() == theirs.reference.strip()
        assert mine.tests.code.split() == theirs.tests.code.split()
        assert mine.tests.preamble == theirs.tests.preamble


BAD = """\
names: x
name: humaneval
limits: {cpu_s: 0, memory: 3}
prompts: chat
comparison: close
tolerance: 2
version: [1]
problems:
  - prompt: 3
    tests: assert (
    entry_point: f-g
  - prompt: Write f(x).
    cases: []
    entry_point: f
    date: yesterday
    labels: [a]
    cluster: ""
  - prompt: Write f(x).
    cases: [{args: [1], expected: 2}]
    stdin: []
  - prompt: Write f(x).
    entry_point: f
    cases:
      - {args: 1, expected: 2}
      - {argz: [1]}
      - g(1) == 2
      - f(x) == 2
      - 3
      - {args: [{1: 2}], expected: 0}
      - {args: [2024-01-01], expected: 1}
  - task_id: again
    prompt: Print a number.
    entry_point: f
    stdin:
      - {input: 1, output: "1"}
      - {input: ""}
  - task_id: again
    prompt: Print a number.
    stdin: [{input: "", output: " "}]
  - just a text
  - prompt: "x = 1"
    stdin: [{input: "", output: "1"}]
    reference: "print("
  - entry_point: f
    tests: "  "
  - prompt: Write f(x).
    entry_point: f
    cases: [{args: [1]}]
  - prompt: Write f(x).
    entry_point: f
    tests: assert f(1)
    reference: "def g(x): return x"
  - task_id: "two\\nlines"
    prompt: Write f(x).
    prompt: Write g(x).
  - {}
  - prompt: Write f(x).
    entry_point: class
    test: assert f(1)
    tests: assert f(2)
  - prompt: Write f(x).
    entry_point: f
    cases:
      - {}
      - {args: [1], expected: [{a: .nan}]}
    labels: {"": x, a: "two\\nlines"}
environment: nope
"""
MISTAKES = {
    1: ["unknown key 'names'. Did you mean 'name'?"],
    2: ["'humaneval' is the name of a built-in benchmark"],
    3: ["cpu_s: 0 is not valid. Give a number from 0.1", "Did you mean 'memory_mb'?"],
    4: ["prompts: 'chat' is unknown. Choose code, instructions"],
    5: ["comparison: 'close' is unknown"],
    6: ["tolerance: 2 is not a number from 0 to 1"],
    7: ["version: [1] is not text"],
    9: ["prompt: 3 is not text"],
    10: ["tests: is not valid Python (line 1 of it"],
    11: ["entry_point: 'f-g' is not a name"],
    13: ["cases: there are no cases"],
    15: ["date: 'yesterday' is not a day"],
    16: ["['a'] is not a mapping"],
    17: ["cluster: is empty"],
    18: ["the problem has cases and stdin", "entry_point: is missing"],
    23: ["cases: 2 of 7 cases have no 'expected'"],
    24: ["1 is not a list"],
    25: ["Did you mean 'args'?", "a case has no 'args'"],
    26: ["'g(1) == 2' is not a case. Write 'f(1, 2) == 3'"],
    27: ["'f(x) == 2' is not a case"],
    28: ["3 is not a mapping"],
    29: ["the key 1 is not text. Write it in quotes"],
    30: ["a value that is not plain data"],
    33: ["a program on standard input has none"],
    35: ["input: 1 is not text"],
    36: ["output: is missing"],
    37: ["the task_id 'again' is also in line 31"],
    39: ["no case expects any output"],
    40: ["'just a text' is not a mapping"],
    41: ["prompt: is Python code, but a program on standard input needs an instruction"],
    43: ["reference: is not valid Python"],
    44: ["prompt: is missing"],
    45: ["tests: is empty"],
    46: ["nothing says what the cases expect"],
    52: ["reference: does not define 'f'"],
    53: ["task_id: 'two\\nlines' is not an id", "the problem has no tests"],
    55: ["'prompt' occurs twice"],
    56: ["prompt: is missing", "the problem has no tests"],
    58: ["entry_point: 'class' is not a name"],
    59: ["'test' and 'tests' mean the same"],
    63: ["cases: 1 of 2 cases have no 'expected'"],
    64: ["a case has no 'args'"],
    65: ["a case expects NaN, which equals nothing"],
    66: ["labels: '' is not a name", "labels: 'a' is not a name with a text"],
    67: ["environment: 'nope' is unknown. Choose bigcodebench, "],
}  # fmt: skip


def test_all_mistakes_are_listed_with_their_lines(assay: Cli, tmp_path: Path) -> None:
    done = assay("eval", write(tmp_path, BAD))
    assert done.returncode == 2
    *lines, last = done.stderr.splitlines()
    count = f"has {len(lines)} mistakes. Correct them; nothing was loaded."
    assert last == f"assay: {tmp_path / 'mine.yaml'}: {count}"
    for number, wanted in MISTAKES.items():
        here = [line for line in lines if line.startswith(f"Line {number}: ")]
        for text in wanted:
            assert any(text in line for line in here), (number, text, here)
    assert {int(line.split()[1].rstrip(":")) for line in lines} == set(MISTAKES)
    assert not (tmp_path / "results").exists()


def test_mistakes_of_both_files_are_listed(tmp_path: Path) -> None:
    write(tmp_path, '{"prompt": "Write f."}\n\n{"a": 1, "a": 2}\n[1]\n{"prompt"\n', "list.jsonl")
    found = mistakes_of(write(tmp_path, "prompts: no\nproblems: list.jsonl\n"))
    other = str(tmp_path / "list.jsonl")
    assert found[0] == "Line 1: prompts: False is unknown. Choose code, instructions."
    assert f"{other}: Line 1: the problem has no tests. Give one of tests, cases, stdin." in found
    assert f"{other}: Line 3: has the field 'a' twice." in found
    assert f"{other}: Line 4: is not a JSON object. Write one problem per line." in found
    assert any(line.startswith(f"{other}: Line 5: not valid JSON") for line in found)
    (missing,) = mistakes_of(write(tmp_path, "problems: none.jsonl\n"))[:1]
    assert missing.startswith("Line 1: ")
    assert "no such file" in missing


@pytest.mark.parametrize(
    ("text", "name", "mistake"),
    [
        ("", "mine.yaml", "None is not a mapping"),
        ("# nothing\n", "mine.yaml", "None is not a mapping"),
        ("", "mine.jsonl", "there are no problems"),
        ("\n \n", "mine.jsonl", "there are no problems"),
        ("problems: []", "mine.yaml", "there are no problems"),
        ("name: x", "mine.yaml", "there are no problems"),
        ("problems: 3", "mine.yaml", "3 is not a list"),
        ("problems: other.csv", "mine.yaml", "is not a .jsonl file"),
        ("problems: [", "mine.yaml", "not valid YAML"),
        ("problems: &a [*a]", "mine.yaml", "not valid YAML"),
        ("problems: !!python/name:os.system", "mine.yaml", "not valid YAML"),
        ("problems: !!python/object:os.system {}", "mine.yaml", "is not a list"),
        ("problems:\n  - date: 2024-13-01", "mine.yaml", "month must be in 1..12, line 2"),
        ("tolerance: 0x" + "f" * 9000, "mine.yaml", "more than 3,500 digits, line 1"),
        ("problems:\n  - <<: {}", "mine.yaml", "'<<' (merge) is not supported as a key, line 2"),
        ('system: "\\ud800"', "mine.yaml", "Line 1: system: has a surrogate"),
        ("? [a]\n: 1", "mine.yaml", "a list or mapping is not supported as a key, line 1"),
        (b"name: x\nlicence: \xe9", "mine.yaml", "Line 2: is not UTF-8 (byte 17)"),
        (b"\x80\x04\x95\x00", "mine.yaml", "is not UTF-8"),
        (b"\x80\x04\x95\x00", "mine.jsonl", "is not UTF-8"),
        (b"\x7fELF\x02\x01\x00", "mine.yaml", "not valid YAML"),
        ("x".encode("utf-16"), "mine.yaml", "is not UTF-8"),
        ("name: a/b\nproblems: []", "mine.yaml", "'a/b' is not a name"),
        ("name: mine.yaml\nproblems: []", "mine.yaml", "'mine.yaml' is not a name"),
        ("{}", "my own.jsonl", "'my own' is not a name"),
        ("{}", "mini.jsonl", "'mini' is the name of a built-in benchmark"),
        ('{"prompt": "\\ud800", "entry_point": "f", "tests": "f()"}', "mine.jsonl", "surrogate"),
        ("[" * 200, "mine.jsonl", "nested more than"),
        ('{"prompt": "' + "x" * (1 << 23) + 'x"}', "mine.jsonl", "more than 8,388,608 characters"),
        ('{"task_id": ' + "9" * 5000 + "}", "mine.jsonl", "Exceeds the limit"),
    ],
)  # fmt: skip
def test_a_bad_file_is_an_error_of_few_lines(
    text: str | bytes, name: str, mistake: str, assay: Cli, tmp_path: Path
) -> None:
    done = assay("eval", write(tmp_path, text, name))
    assert done.returncode == 2
    assert mistake in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 5
    assert not (tmp_path / "results").exists()


def test_only_the_first_hundred_mistakes_are_listed(assay: Cli, tmp_path: Path) -> None:
    for line, last in (('{"x":\n', "Line 99: not valid JSON"), ("{}\n", "Line 34: ")):
        lines = assay("eval", write(tmp_path, line * 1000, "mine.jsonl")).stderr.splitlines()
        assert len(lines) == 102
        assert lines[99].startswith(last)
        assert lines[100].startswith("... and ")


def test_what_is_not_a_file_is_refused(assay: Cli, tmp_path: Path) -> None:
    (tmp_path / "folder.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name, problem in (
        ("folder.yaml", "is a folder, not a file"),
        ("pipe.jsonl", "is a named pipe, not a file"),
        ("none.yaml", "no such file"),
        ("data.csv", "is not a .yaml or .jsonl file"),
    ):
        done = assay("eval", tmp_path / name)
        assert (done.returncode, problem in done.stderr) == (2, True)
        assert len(done.stderr.splitlines()) == 1


def test_marks_and_line_ends_of_windows_change_nothing(tmp_path: Path) -> None:
    plain_text = benchmarks.load(str(write(tmp_path, GOOD)))
    windows = "\ufeff" + GOOD.replace("\n", "\r\n")
    assert benchmarks.load(str(write(tmp_path, windows, "w.yaml"))).problems == plain_text.problems
    lines = "\ufeff" + f"{json.dumps(PROBLEM)}\r\n" * 2
    assert len(benchmarks.load(str(write(tmp_path, lines, "w.jsonl"))).problems) == 2


@pytest.mark.slow
def test_a_hundred_thousand_problems_are_read(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text(f"{json.dumps(PROBLEM)}\n" * 100_000)
    assert len(benchmarks.load(str(path)).problems) == 100_000
    inline = "problems:\n" + "  - {prompt: a, entry_point: b, tests: c}\n" * 20_000
    (mistake,) = mistakes_of(write(tmp_path, inline))
    assert "more than 100,000 values" in mistake
    assert "Put the problems of a large benchmark into a JSONL file." in mistake


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("f(1) == 2"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES), max_size=3))
def test_any_problems_are_read_or_refused_in_lines(found: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write_lines(Path(folder), PROBLEM, *found)
        with contextlib.suppress(MistakesError):
            assert len(benchmarks.load(str(path)).problems) == 1 + len(found)


@given(st.dictionaries(st.sampled_from(settings.KEYS), VALUES))
def test_any_settings_are_read_or_refused_in_lines(found: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), json.dumps(found))  # which is YAML too
        with contextlib.suppress(MistakesError):
            assert benchmarks.load(str(path)).problems


def test_the_declared_kind_of_prompt_is_checked(tmp_path: Path) -> None:
    words = {**PROBLEM, "prompt": "Write add(a, b)."}
    write_lines(tmp_path, PROBLEM, words)
    (mistake,) = mistakes_of(write(tmp_path, "prompts: code\nproblems: mine.jsonl\n"))
    assert "Line 2: prompt: is not valid Python." in mistake
    (mistake,) = mistakes_of(write(tmp_path, "prompts: instructions\nproblems: mine.jsonl\n"))
    assert "Line 1: prompt: is Python code" in mistake


def test_a_call_of_check_is_added_once(tmp_path: Path) -> None:
    check = "def check(candidate):\n    assert candidate(1, 2) == 3\n"
    problems = [{**PROBLEM, "tests": tests} for tests in (check, f"{check}check(add)\n")]
    for problem in problems:
        del problem["cases"]
    first, second = benchmarks.load(str(write_lines(tmp_path, *problems))).problems
    assert first.tests.code == f"{check}\ncheck(add)\n"
    assert second.tests.code == f"{check}check(add)\n"


@pytest.mark.parametrize("how", ["link", "absolute", "above", "through a folder"])
def test_a_benchmark_reads_no_file_outside_its_folder(tmp_path: Path, how: str) -> None:
    """A benchmark of someone else would show a user's own file in prompts and results."""
    secret = write_lines(tmp_path, PROBLEM, name="secret.jsonl")
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "link.jsonl").symlink_to(secret)
    (folder / "up").symlink_to(tmp_path)
    named = {
        "link": "link.jsonl", "absolute": str(secret), "above": "../secret.jsonl",
        "through a folder": "up/secret.jsonl",
    }[how]  # fmt: skip
    (mistake,) = mistakes_of(write(folder, f"problems: {named}\n"))
    assert "is, or links to, a file outside the benchmark's folder. Copy it there" in mistake


def test_a_path_that_the_user_gives_may_be_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    write_lines(folder, PROBLEM, name="version1.jsonl")
    (folder / "mine.jsonl").symlink_to("version1.jsonl")
    write(folder, "problems: mine.jsonl\n", name="real.yaml")
    (folder / "linked.yaml").symlink_to("real.yaml")
    assert len(read_own(folder / "linked.yaml").benchmark.problems) == 1
    (tmp_path / "lines.jsonl").symlink_to(folder / "version1.jsonl")
    assert len(read_own(tmp_path / "lines.jsonl").benchmark.problems) == 1


@pytest.mark.parametrize("target", ["/dev/zero", "/proc/self/mem", "pipe", "."])
def test_a_link_to_something_else_than_a_file_is_refused(tmp_path: Path, target: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "mine.jsonl").symlink_to(target)
    (tmp_path / "mine.yaml").symlink_to(target)
    for name in ("mine.jsonl", "mine.yaml"):
        with pytest.raises(AssayError) as found:
            read_own(tmp_path / name)
        assert "\n" not in str(found.value)

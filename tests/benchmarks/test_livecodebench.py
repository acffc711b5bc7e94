"""LiveCodeBench: files in upstream's format, both kinds of tests, prompts, extraction, windows."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay import benchmarks, extract
from assay.benchmarks import livecodebench as lcb
from assay.benchmarks.support import livecodebench_files as files
from assay.data import text_cases
from assay.errors import DataError, SandboxError, UsageError
from assay.pipeline.plan import case_groups
from assay.pipeline.problems import ProblemSelection, with_all_cases
from assay.prompts import strategies
from assay.sandbox import Sandbox, open_sandbox
from assay.sandbox.environments import store
from assay.selection import methods
from assay.types import Benchmark, Job, Limits, Problem, Program, Verdict
from tests.benchmarks.livecodebench_data import (
    CALLS,
    SCRIPT,
    STDIN,
    encode_tests,
    record,
    small_releases,
    write_release,
)
from tests.conftest import Cli

EQUAL = "class E(list):\n    def __eq__(self, other): return True\n"


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    with small_releases(tmp_path, {"v1": 24, "v2": 6}) as folder:
        yield folder


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    opened = open_sandbox("process", 2)
    yield opened
    opened.close()


def judged(sandbox: Sandbox, problem: Problem, code: str) -> Verdict:
    limits = Limits(cpu_s=10, call_cpu_s=2, wall_s=20)
    (verdict,) = sandbox.judge(
        [Job(problem.task_id, 0, Program(code, "x"), problem.tests, limits, lcb.IMPORTS)]
    )
    return verdict


def load(data: Path, name: str = "livecodebench-v2") -> Benchmark:
    return benchmarks.load(name, data_dir=data)


def test_a_release_contains_those_before_it(data: Path) -> None:
    first, second = load(data, "livecodebench-v1"), load(data)
    assert [p.task_id for p in second.problems] == [f"q{n}" for n in range(30)]
    assert first.problems == second.problems[:24]
    assert first.data_sha256 != second.data_sha256
    assert case_groups(second) == ["cases"]


def test_problems_have_dates_labels_and_packed_tests(data: Path) -> None:
    problem, method = load(data).problems[:2]
    assert (problem.date, problem.labels) == (
        "2024-01-15", {"difficulty": "easy", "platform": "atcoder"},
    )  # fmt: skip
    assert (problem.tests.is_script, problem.tests.entry_point) == (True, "")
    texts = [one.tests.texts for one in (problem, method)]
    assert [text_cases.unpack(one) for one in texts if one] == [STDIN, CALLS]
    assert (method.tests.entry_point, method.tests.is_script) == ("add", False)
    assert {p.tests.integrity for p in (problem, method)} == {"separated"}


@pytest.mark.parametrize(
    ("fields", "mark"),
    [
        ({"question_id": "abc337_e"}, "interactive"),
        ({"question_id": "abc311_c"}, "several answers"),
        ({"question_title": "find-the-peaks"}, "several answers"),
        ({"question_id": "arc189_a"}, "wrong tests"),
        ({}, None),
    ],
)
def test_problems_of_the_errata_are_marked(fields: dict[str, str], mark: str | None) -> None:
    question = files._read_question(record(0, **fields))
    assert lcb.build_problem(question).labels.get("marked") == mark


def test_tests_on_standard_input(data: Path, sandbox: Sandbox) -> None:
    problem = load(data).problems[0]
    right = "a, b = map(int, stdin.readline().split())\nprint(Decimal(a + b) if 0 else a + b)"
    assert judged(sandbox, problem, right).status == "pass"
    only_public = "print(3)"
    verdict = judged(sandbox, problem, only_public)
    assert (verdict.reason, verdict.groups) == ("wrong-answer", {"cases": (1, 2)})


@pytest.mark.parametrize(
    ("code", "passes"),
    [
        ("class Solution:\n    def add(self, a, b): return [b, sum(a)]", True),
        ("class Solution:\n    def add(self, a, b): return (b, sum(a))", True),
        ("class Solution:\n    @staticmethod\n    def add(a, b): return [b, sum(a)]", True),
        ("def add(a, b): return [b, sum(a)]", True),
        ("class Solution:\n    def add(self, a: List, b): return [b, reduce(add, a)]", True),
        ("class Solution:\n    def add(self, a, b): return [b, sum(a) + 1]", False),
        ("class Solution:\n    def add(self, a, b): return ['a', 3]", False),
        ("class Solution:\n    def other(self, a, b): return [b, sum(a)]", False),
        ("class Solution:\n    def __init__(self, x): self.add = x", False),
        (f"{EQUAL}class Solution:\n    def add(self, a, b): return E()", False),
    ],
)  # fmt: skip
def test_function_tests(data: Path, sandbox: Sandbox, code: str, passes: bool) -> None:
    verdict = judged(sandbox, load(data).problems[1], code)
    assert (verdict.status == "pass") == passes, verdict
    assert verdict.status in ("pass", "fail")


def test_nested_tuples_are_not_lists(sandbox: Sandbox) -> None:
    pairs = [("[1]", "[[1]]")]
    fields = {
        "public_test_cases": encode_tests(pairs, "functional"),
        "private_test_cases": encode_tests(pairs, "functional"),  # plain JSON, as in some files
    }
    problem = lcb.build_problem(files._read_question(record(1, **fields)))
    good = "class Solution:\n    def add(self, a): return ([1],)"
    assert judged(sandbox, problem, good).status == "pass"
    assert judged(sandbox, problem, good.replace("([1],)", "[(1,)]")).status == "fail"


def test_the_prompt_is_upstreams(data: Path) -> None:
    script, method = load(data).problems[:2]
    prompt = strategies.get("standard").build(script, "chat")
    system, user = prompt.messages
    assert (system.role, system.content[:24]) == ("system", "You are an expert Python")
    assert user.content.startswith("### Question:\nAdd 0 numbers.\n\nSample Input 1\n\n1 2\n\n")
    assert "### Format: Read the inputs from stdin solve the problem" in user.content
    assert "```python\n# YOUR CODE HERE\n```\n\n### Answer: (use the" in user.content
    other = strategies.get("standard").build(method, "chat").messages[1].content
    assert "```python\nclass Solution:\n    def add(self, a, b):\n        \n```" in other
    text = strategies.get("standard").build(script, "text")
    assert text.text.startswith('"""\nAdd 0 numbers.')
    assert "\ndef " not in text.stop


ANSWER = (
    "Words.\n```python\nimport sys\nprint(sys.stdin.read())\n```\nFor example:\n```\n1 2\n```\n"
)


MAIN = (
    "def f(n):\n    return n\ndef g(n):\n    return f(n)\n\n"
    "if __name__ == '__main__':\n    print(g(input()))"
)


@pytest.mark.parametrize(
    ("text", "ours", "upstream"),
    [
        ("```python\nprint(input())\n```", "print(input())", "print(input())"),
        (ANSWER, "import sys\nprint(sys.stdin.read())", "1 2"),
        ("print(input())", "print(input())", ""),
        ("<think>```python\nno()\n```</think>\n```python\nprint(input())\n```",
         "print(input())", "print(input())"),
        ("```python\nprint(input())", "print(input())", ""),
        ("No program here.", "", ""),
        ("The answer is 42", "", ""),
        ("```python\nn = int(input())\n```\nthen\n```python\nn = int(input())\nprint(n)\n```",
         "n = int(input())\nprint(n)", "n = int(input())\nprint(n)"),
        (f"```python\n{MAIN}\n```", MAIN, MAIN),
    ],
)  # fmt: skip
def test_programs_are_extracted_as_ours_and_as_upstream(
    data: Path, text: str, ours: str, upstream: str
) -> None:
    problem = load(data).problems[0]
    assert extract.extract(text, problem, "chat").code.strip() == ours
    other = replace(problem, only_rule="last-fences")
    assert extract.extract(text, other, "chat").code == upstream


@pytest.mark.parametrize(
    "answer",
    [
        "class Solution:\n    def add(self, a, b):\n        return [b, sum(a)]\n",
        "def add(a, b):\n    return [b, sum(a)]\n",
        "class Solution:\n    def add(self, a, b):\n        return self.both(a, b)\n"
        "    def both(self, a, b):\n        return [b, sum(a)]\n\nprint(Solution().add([1], 2))\n",
    ],
)
@pytest.mark.parametrize("only_rule", ["", "last-fences"])
def test_answers_with_and_without_a_class_are_judged(
    data: Path, sandbox: Sandbox, answer: str, only_rule: str
) -> None:
    problem = replace(load(data).problems[1], only_rule=only_rule)
    found = extract.extract(f"Sure:\n```python\n{answer}```\nDone.", problem, "chat")
    assert judged(sandbox, problem, found.code).status == "pass", found


def test_a_base_model_continues_the_program(data: Path) -> None:
    script, method = load(data).problems[:2]
    found = extract.extract("import sys\nprint(sum(map(int, sys.stdin)))\n", script, "text")
    assert found.code.endswith("print(sum(map(int, sys.stdin)))\n")
    found = extract.extract("return [b, sum(a)]\n", method, "text")
    assert found.code.index("class Solution:") < found.code.index("return [b, sum(a)]")


def one_line(error: Exception) -> str:
    text = str(error)
    assert "\n" not in text
    return text


def select(data: Path, **settings: Any) -> tuple[list[str], str]:
    chosen, label = ProblemSelection(**settings).apply(load(data))
    return [p.task_id for p in chosen.problems], label


def test_windows_and_labels_select_problems(data: Path) -> None:
    assert select(data, first_day="2024-12-01") == (["q11", "q23"], "[2024-12-01..]")
    assert select(data, last_day="2024-01-15") == (["q0", "q12", "q24"], "[..2024-01-15]")
    ids, label = select(data, first_day="2024-02-01", last_day="2024-03-31", range="2")
    assert (ids, label) == (["q1", "q2"], "[2024-02-01..2024-03-31][:2]")
    ids, label = select(data, labels=("platform=atcoder", "difficulty=hard"))
    assert (ids, label) == (
        ["q2", "q8", "q14", "q20", "q26"], "[platform=atcoder][difficulty=hard]",
    )  # fmt: skip
    assert select(data, first_day="2020-01-01") == ([f"q{n}" for n in range(30)], "")


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"first_day": "2024-13-01"}, "--from 2024-13-01: is not a day"),
        ({"last_day": "20240101"}, "--to 20240101: is not a day"),
        ({"first_day": "2024-02-01", "last_day": "2024-01-01"}, "is after --to"),
        ({"first_day": "2030-01-01"}, "selects no problem"),
        ({"labels": ("hard",)}, "--label hard: has no value"),
        ({"labels": ("difficulty=none",)}, "difficulty=easy, difficulty=hard, difficulty=medium"),
        ({"labels": ("colour=red",)}, "It has difficulty, platform"),
    ],
)
def test_bad_selections_get_one_line(data: Path, settings: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError) as raised:
        select(data, **settings)
    assert error in one_line(raised.value)


def test_all_cases_can_be_counted(data: Path, sandbox: Sandbox) -> None:
    problem = with_all_cases(load(data)).problems[0]
    verdict = judged(sandbox, problem, "print(9)")
    assert verdict.groups == {"cases": (1, 2)}
    assert judged(sandbox, load(data).problems[0], "print(9)").groups == {"cases": (0, 2)}


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('unpickled')",)


def pickled(text: str) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(text))).decode()


EVIL = base64.b64encode(zlib.compress(pickle.dumps(Evil()))).decode()


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"private_test_cases": "?"}, "line 3: is not a problem of LiveCodeBench (the private"),
        ({"private_test_cases": base64.b64encode(b"xyz").decode()}, "damaged: not compressed"),
        ({"private_test_cases": EVIL}, "refused the opcode"),
        ({"private_test_cases": "[1"}, "line 3"),
        ({"private_test_cases": pickled("hello")}, "not a list of test cases"),
        ({"private_test_cases": "é"}, "line 3"),
        ({"public_test_cases": "{}"}, "not a list of test cases"),
        ({"public_test_cases": "[1]"}, "without the texts input and output"),
        ({"public_test_cases": '[{"input": 1, "output": "x"}]'}, "without the texts input"),
        ({"public_test_cases": "[" * 100_000}, "nested too deeply"),
        ({"metadata": "no"}, "line 3"),
        ({"metadata": "[]"}, "the metadata is not an object"),
        ({"metadata": "null"}, "the metadata is not an object"),
        ({"metadata": '{"func_name": 5}'}, "func_name is not a name"),
        ({"metadata": '{"func_name": "add; import os"}'}, "func_name is not a name"),
        ({"question_id": 7}, "question_id is not a text"),
        ({"question_id": "q\n2"}, "question_id is not an id"),
        ({"contest_date": "soon"}, "line 3: is not a problem of LiveCodeBench (Invalid isoformat"),
        ({"question_id": "q0"}, "has the problem q0 twice"),
    ],
)  # fmt: skip
def test_damaged_files_get_one_line(data: Path, fields: dict[str, Any], error: str) -> None:
    records = [record(n, **(fields if n == 2 else {})) for n in range(24)]
    write_release(data, "v1", records)
    with pytest.raises(DataError) as raised:
        load(data, "livecodebench-v1")
    assert error in one_line(raised.value)


def test_a_decompression_bomb_is_not_unpacked(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may be large, but not 1,000 times as large as in the file."""
    monkeypatch.setattr(files, "RATIO_FROM", 1 << 20)
    bomb = {"private_test_cases": pickled(f"[{' ' * (1 << 20)}]")}
    write_release(data, "v1", [record(n, **(bomb if n == 2 else {})) for n in range(24)])
    with pytest.raises(DataError, match=r"line 3: .+ cut off, or larger than 1 MB"):
        load(data, "livecodebench-v1")


@pytest.mark.parametrize(
    "private", [pickled("[1]"), pickled("[" * 100_000 + "]"), pickled('[{"input": 1}]')]
)
def test_damaged_private_tests_cost_only_their_problem(
    data: Path, sandbox: Sandbox, private: str
) -> None:
    records = [record(n, **({"private_test_cases": private} if n == 2 else {})) for n in range(24)]
    write_release(data, "v1", records)
    _, _, damaged, _, sound, *_ = load(data, "livecodebench-v1").problems
    limits = Limits(cpu_s=10, call_cpu_s=2, wall_s=20)
    add = Program(SCRIPT, "x")
    jobs = [
        Job(problem.task_id, number, add, problem.tests, limits, lcb.IMPORTS)
        for number, problem in enumerate([damaged, sound, damaged, sound])
    ]
    verdicts = sorted(sandbox.judge(jobs), key=lambda verdict: verdict.sample)
    assert [verdict.status for verdict in verdicts] == ["invalid", "pass", "invalid", "pass"]
    assert "the benchmark's own tests are damaged" in verdicts[0].detail


def test_lone_surrogates_in_tests_are_judged(data: Path, sandbox: Sandbox) -> None:
    tests = '[{"input": "\ud800", "output": "3"}]'
    records = [record(n, **({"public_test_cases": tests} if n == 2 else {})) for n in range(24)]
    write_release(data, "v1", records)
    problem = load(data, "livecodebench-v1").problems[2]
    assert judged(sandbox, problem, "import sys\nprint(len(sys.stdin.read()))").status == "fail"


def test_a_missing_or_short_file_is_named(data: Path) -> None:
    with pytest.raises(DataError, match=r"test3.jsonl of LiveCodeBench: is not on this machine"):
        load(data, "livecodebench-v3")
    write_release(data, "v2", [record(n) for n in range(24, 29)])
    with pytest.raises(DataError, match="has 5 problems instead of the 6"):
        load(data)
    (data / files.FOLDER / "test2.jsonl").write_text("no JSON\n")
    with pytest.raises(DataError, match="line 1"):
        load(data)


def test_files_are_found_in_the_hubs_own_cache(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = tmp_path / "hf/hub/datasets--livecodebench--code_generation_lite/snapshots/abc"
    snapshot.parent.mkdir(parents=True)
    (data / files.FOLDER).rename(snapshot)
    assert len(load(tmp_path).problems) == 30
    monkeypatch.setenv(files.VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="is not a folder"):
        load(tmp_path)


def test_the_names_are_all_described() -> None:
    counts = {"v1": 400, "v2": 511, "v3": 612, "v4": 713, "v5": 880, "v6": 1055}
    described = {f"livecodebench-{release}": count for release, count in counts.items()}
    described |= {"livecodebench": 1055, "livecodebench-upstream": 1055}
    described |= {
        "livecodebench-v4_v5": 268,
        "livecodebench-v5_v6": 342,
        "livecodebench-v6_v6": 175,
    }
    for name, count in described.items():
        about = benchmarks.benchmarks.describe(name)
        assert about is not None
        assert about.problems == count


def test_upstreams_extraction_is_a_benchmark_of_its_own(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lcb, "releases_of", lambda _: ["v1"])
    ours, theirs = (load(data, name) for name in ("livecodebench", "livecodebench-upstream"))
    assert {p.only_rule for p in ours.problems} == {""}
    assert {p.only_rule for p in theirs.problems} == {"last-fences"}
    assert (ours.name, theirs.name) == ("livecodebench", "livecodebench-upstream")


@pytest.mark.parametrize("name", methods.names())
def test_best_of_n_finds_no_examples_in_contest_problems(data: Path, name: str) -> None:
    method = methods.get(name)
    for problem in load(data).problems[:2]:
        assert method.probe is None or method.probe(problem) is None


def test_completions_are_scored_from_the_command_line(assay: Cli, data: Path) -> None:
    try:
        store.find(lcb.ENVIRONMENT)
    except SandboxError as error:
        pytest.skip(str(error))
    script = f"```python\n{SCRIPT}```"
    method = "```python\nclass Solution:\n    def add(self, a, b):\n        return [b, sum(a)]\n```"
    texts = {"q0": script, "q1": method, "q2": "```python\nprint(3)\n```", "q3": "No."}
    samples = data / "samples.jsonl"
    lines = (json.dumps({"task_id": t, "completion": text}) for t, text in texts.items())
    samples.write_text("\n".join(lines))
    done = assay(
        "score", samples, "--benchmark", "livecodebench-v1", "--data", data, "--problems", "4",
        "--to", "2024-04-30", "--results-dir", data / "results", "--all-cases",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "livecodebench-v1[..2024-04-30][:4]" in done.stdout
    for count in ("passed 2", "wrong-answer 1", "syntax 1"):
        assert count in done.stdout

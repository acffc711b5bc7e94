"""CanItEdit: prompts, whole files as answers, references, unedited files, ExcessCode."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay import benchmarks
from assay.benchmarks.canitedit import read_unedited_programs
from assay.errors import DataError, SandboxError
from assay.extract import extract
from assay.extract.extraction import alternative, explain_extraction
from assay.prompts import find_strategy, list_strategies
from assay.report.benchmarks import list_benchmarks
from assay.sandbox import Sandbox, open_sandbox
from assay.sandbox.environments import store as environments
from assay.types import Benchmark, Job, Problem, Program, Verdict
from tests.conftest import Cli, write_completions

UNSCORABLE = "CanItEdit/78/lazy"  # imports vllm, which has no part in the environment
# Their tests demand that the edited code is faster, which a busy machine can hide.
TIMED = {f"CanItEdit/{number}/lazy" for number in (47, 55, 60)}


@pytest.fixture
def both(_environment: None, shared_data: Path) -> Benchmark:
    return benchmarks.load("canitedit", data_dir=shared_data)


@pytest.fixture
def lazy(_environment: None, shared_data: Path) -> Benchmark:
    return benchmarks.load("canitedit-lazy", data_dir=shared_data)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    try:
        environments.find("canitedit")
    except SandboxError as error:
        pytest.skip(str(error))
    opened = open_sandbox("process", 2)
    yield opened
    opened.close()


def judge(sandbox: Sandbox, benchmark: Benchmark, programs: dict[str, str]) -> list[Verdict]:
    problems = {p.task_id: p for p in benchmark.problems}
    jobs = [
        Job(
            task_id, 0, Program(code, "x"), problems[task_id].tests, benchmark.limits,
            benchmark.imports, benchmark.environment,
        )
        for task_id, code in programs.items()
    ]  # fmt: skip
    return list(sandbox.judge(jobs))


def judge_timed_again(
    sandbox: Sandbox, benchmark: Benchmark, programs: dict[str, str], expected: str
) -> list[Verdict]:
    """Judge programs. Those whose tests compare times get two more attempts, alone."""
    found = {v.task_id: v for v in judge(sandbox, benchmark, programs)}
    for _ in range(2):
        for task_id in [t for t in TIMED & found.keys() if found[t].status != expected]:
            (found[task_id],) = judge(sandbox, benchmark, {task_id: programs[task_id]})
    return list(found.values())


def find(benchmark: Benchmark, number: int) -> Problem:
    return next(p for p in benchmark.problems if p.cluster == f"CanItEdit/{number}")


def test_each_problem_has_two_instructions(both: Benchmark, lazy: Benchmark) -> None:
    assert len(both.problems) == 2 * len(lazy.problems) == 210
    assert Counter(Counter(p.cluster for p in both.problems).values()) == {2: 105}
    assert Counter(p.labels["change"] for p in lazy.problems) == {
        "adaptive": 35, "corrective": 35, "perfective": 35,
    }  # fmt: skip
    assert Counter(p.labels["instruction"] for p in both.problems) == {
        "descriptive": 105, "lazy": 105,
    }  # fmt: skip
    assert all("instruction" not in p.labels for p in lazy.problems)
    assert {p.tests.integrity for p in both.problems} == {"shared"}
    assert {p.date for p in both.problems} == {"2024-03-19"}


def test_upstreams_prompts(both: Benchmark) -> None:
    """As generate_completions.py builds them: ``direct`` and ``chat``."""
    assert list_strategies(both) == ["standard", "scot", "upstream"]
    descriptive, lazy = both.problems[:2]
    build = find_strategy("upstream", both).build
    text = build(descriptive, "text")
    assert text.text.startswith("## Code Before:\nclass Cipher:\n\n    def __init__(self):")
    assert "self.ciphers[name] = cipher\n## Instruction:\nCreate a new method" in text.text
    assert text.text.endswith("followed by the shift amount.\n## Code After:\n")
    assert "## Code Before:" in text.stop
    system, user = build(lazy, "chat").messages
    assert system.content.startswith("You are PythonEditGPT. You will be provided the original")
    assert user.content.startswith("## Code Before\n```py\nclass Cipher:")
    assert "= cipher\n```\n\n## Instruction\nCreate a new method" in user.content
    assert user.content.endswith("every letter by a given amount.\n\n## Code After")


@pytest.mark.parametrize("strategy", ["standard", "scot"])
def test_our_prompts_show_the_file_and_hide_the_change(both: Benchmark, strategy: str) -> None:
    problem = both.problems[0]
    (message,) = find_strategy(strategy, both).build(problem, "chat").messages
    assert "class Cipher:" in message.content
    assert "shifted += self.alphabet[index]" not in message.content
    assert "assert" not in message.content
    assert message.content.endswith("the whole changed file in one Python code block.")
    assert ("First say which parts" in message.content) == (strategy == "scot")


def test_a_whole_file_is_judged_as_it_is(both: Benchmark) -> None:
    """ExcessCode counts code that nobody needs, so it is not cut off."""
    problem = both.problems[0]
    excess = "\n\ndef helper():\n    return 1\n\n\nif __name__ == '__main__':\n    helper()\n"
    file = problem.reference + excess
    for text in (f"Here it is:\n\n```py\n{file}```\nIt has a new method.", file):
        assert extract(text, problem, "chat").code == file
        assert alternative(text, explain_extraction(text, problem, "chat"), problem) is None
    assert extract(f"{file}\n", problem, "text").code.strip() == file.strip()


def test_answers_that_leave_parts_out_are_not_completed(both: Benchmark) -> None:
    problem = both.problems[0]
    method = "    def caesar_cipher(self, shift):\n        return shift\n"
    assert extract(f"```python\n{method}```", problem, "chat").code != problem.reference
    assert "def translate" not in extract(f"```python\n{method}```", problem, "chat").code


def test_a_missing_file_says_where_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("ASSAY_DATA_DIR", raising=False)
    with pytest.raises(DataError, match="Put nuprl/CanItEdit of the Hugging Face hub, as JSON"):
        benchmarks.load("canitedit")
    (listed,) = (b for b in list_benchmarks() if b.name == "canitedit")
    assert (listed.data, listed.path) == ("own-files", "canitedit/canitedit.jsonl.gz")


@pytest.mark.parametrize(
    "every", [pytest.param(5, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.whole)]
)
def test_references_pass_and_unedited_files_fail(
    sandbox: Sandbox, lazy: Benchmark, every: int
) -> None:
    some = [p for p in lazy.problems if p.task_id == UNSCORABLE]
    some += [p for p in lazy.problems if p.task_id != UNSCORABLE][::every]
    right = judge_timed_again(sandbox, lazy, {p.task_id: p.reference for p in some}, "pass")
    failed = {v.task_id: v.detail for v in right if v.status != "pass"}
    assert set(failed) == {UNSCORABLE}
    assert "ModuleNotFoundError" in failed[UNSCORABLE]
    before = read_unedited_programs()
    unedited = {p.task_id: before[p.cluster or ""] for p in some}
    wrong = judge_timed_again(sandbox, lazy, unedited, "fail")
    assert {v.status for v in wrong} == {"fail"}
    assert len(right) == len(wrong) == len(some) == 1 + -(-104 // every)
    assert {v.integrity for v in (*right, *wrong)} == {"shared"}


@pytest.mark.slow
def test_tests_can_read_the_file_and_it_runs_as_a_script(sandbox: Sandbox, lazy: Benchmark) -> None:
    """The tests of 38 forbid loops, those of 54 compare a class with its text."""
    loops, game = find(lazy, 38), find(lazy, 54)
    changed = game.reference.replace("playerTurn = not playerTurn", "playerTurn = not (playerTurn)")
    stops = "\nif __name__ == '__main__':\n    raise SystemExit(3)\n"
    programs = [
        {loops.task_id: loops.reference, game.task_id: game.reference},
        {loops.task_id: f"for _ in []: pass\n{loops.reference}", game.task_id: changed},
        {loops.task_id: loops.reference + stops, game.task_id: game.reference + stops},
    ]
    reasons = [{v.reason for v in judge(sandbox, lazy, some)} for some in programs]
    assert reasons == [{"passed"}, {"wrong-answer"}, {"exit"}]


@pytest.mark.slow
@pytest.mark.usefixtures("sandbox")
def test_a_result_has_excess_code_and_kinds_of_change(
    lazy: Benchmark, shared_data: Path, tmp_path: Path, assay: Cli
) -> None:
    """Upstream's number, worked out by hand: uncovered lines per line of the diff."""
    hello, cipher, vllm = find(lazy, 3), find(lazy, 1), find(lazy, 78)
    # No test reaches 6 lines: two statements with a blank line and a comment between, and two more.
    excess = (
        "\n\ndef unused(a):\n    b = a\n\n    # nothing\n    return b\n"
        "\n\nclass Other:\n    def method(self):\n        c = 1\n        return c\n"
    )
    answers = [(hello, hello.reference + excess), (cipher, cipher.reference), (vllm, "x = 1")]
    samples = write_completions(
        tmp_path / "s.jsonl", [(p.task_id, f"```python\n{code}```") for p, code in answers]
    )
    asked = ["score", str(samples), "--benchmark", "canitedit-lazy", "--data", str(shared_data)]
    for problem, _ in answers:
        asked += ["--task", problem.task_id]
    done = assay(*asked, "--json")
    assert done.returncode == 3, done.stderr  # one problem has no score here
    results = json.loads(done.stdout)["results"]
    ((name, found),) = results["measures"].items()
    assert name == "excess code"
    # The diff has the first line, the second before and after, a hint below, and the excess.
    assert found["value"] == pytest.approx(6 / (1 + 2 + 1 + 12) / 2)
    assert (found["problems"], found["samples"], found["unmeasured"]) == (2, 2, 0)
    assert results["unscorable"].keys() == {vllm.task_id}
    assert results["integrity"] == {"shared": 2, "not-run": 1}
    assert set(results["breakdowns"]) == {"change"}
    lines = assay(*asked).stdout.splitlines()
    (line,) = (line for line in lines if line.startswith("  excess code"))
    assert line.endswith("passed programs of 2 problems")

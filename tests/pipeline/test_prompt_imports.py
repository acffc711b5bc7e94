"""What stands before a program: the prompt's imports and helpers, or nothing of the prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from assay import protocol
from assay.cli._progress import ProgressDisplay
from assay.data.failures import explain_failure
from assay.extract import extract
from assay.peers import PeerVerdict, peers
from assay.pipeline import ScoreConfig, score
from assay.pipeline.cross_check import disagreements, peer_score
from assay.pipeline.problems import ProblemSelection, surround, without_prompt_code
from assay.report.export import export
from assay.runs import Result, RunReader
from assay.types import Benchmark, Problem, PromptImports, SampleKey, Tests
from tests.conftest import write_completions

# Its prompt imports List; those of 32, 38 and 50 have helpers that their tests call.
FIRST = "HumanEval/0"
HELPERS = ("HumanEval/32", "HumanEval/38", "HumanEval/50")


def by_id(benchmark: Benchmark, task_id: str) -> Problem:
    return next(p for p in benchmark.problems if p.task_id == task_id)


def alone(problem: Problem) -> str:
    """Return the reference without what precedes the function in the prompt."""
    name = problem.tests.entry_point
    return problem.reference[problem.reference.index(f"def {name}(") :]


def scored(
    path: Path, benchmark: str, choice: PromptImports, results: Path, *, no_cache: bool = True
) -> tuple[Result, dict[str, str]]:
    """Return the evaluation and why each task ended."""
    config = ScoreConfig(
        benchmark, results, samples_file=str(path), partial=True, prompt_imports=choice,
        no_cache=no_cache, workers=1,
    )  # fmt: skip
    with ProgressDisplay(benchmark, quiet=True) as display:
        evaluation = score(config, display)
    verdicts = RunReader(evaluation.path.with_suffix("")).verdicts
    return evaluation, {
        task_id: explain_failure(v) or v.reason for (task_id, _), v in verdicts.items()
    }


@pytest.mark.usefixtures("shared_data")
def test_a_program_without_the_prompts_imports_passes_only_where_they_are_prepended(
    humaneval: Benchmark, tmp_path: Path
) -> None:
    """EvalPlus runs the program of a chat model alone."""
    lacking = [(t, alone(by_id(humaneval, t))) for t in (FIRST, "HumanEval/10", "HumanEval/38")]
    path = write_completions(tmp_path / "s.jsonl", lacking)
    with_them, reasons = scored(path, "humaneval", "prepended", tmp_path / "results")
    assert set(reasons.values()) == {"passed"}
    without, reasons = scored(path, "humaneval", "none", tmp_path / "results")
    for task_id, name in ((FIRST, "List"), ("HumanEval/10", "is_palindrome")):
        assert f"NameError: name '{name}' is not defined" in reasons[task_id]
    assert "name 'encode_cyclic' is not defined" in reasons["HumanEval/38"]
    hashes = [e.protocol.hash for e in (with_them, without)]
    assert hashes[0] != hashes[1]
    choices = [e.protocol.prompt_imports for e in (with_them, without)]
    assert choices == ["prepended", "none"]


@pytest.mark.usefixtures("shared_data")
def test_tests_keep_the_helpers_that_they_call(humaneval: Benchmark, tmp_path: Path) -> None:
    references = [(t, by_id(humaneval, t).reference) for t in (FIRST, *HELPERS)]
    path = write_completions(tmp_path / "s.jsonl", references)
    evaluation, reasons = scored(path, "humaneval", "none", tmp_path / "results")
    assert set(reasons.values()) == {"passed"}
    assert evaluation.results.unscorable == {}


@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize("restated", [False, True])
def test_a_continuation_of_the_prompt_has_its_imports(
    humaneval: Benchmark, tmp_path: Path, restated: bool
) -> None:
    """As in EvalPlus, which executes prompt and completion together."""
    problem = by_id(humaneval, FIRST)
    text = alone(problem) if restated else problem.reference.removeprefix(problem.prompt)
    path = write_completions(tmp_path / "s.jsonl", [(FIRST, text)], field="completion")
    _, reasons = scored(path, "humaneval", "none", tmp_path / "results")
    assert reasons == {FIRST: "passed"}


def test_nothing_is_imported_for_a_program(mini: Benchmark, tmp_path: Path) -> None:
    first = mini.problems[0]
    hinted = f"def helper(x: List[int]) -> Any:\n    return x\n\n\n{first.reference}"
    path = write_completions(tmp_path / "s.jsonl", [(first.task_id, hinted)])
    _, reasons = scored(path, "mini", "prepended", tmp_path / "results")
    assert reasons == {first.task_id: "passed"}
    evaluation, reasons = scored(path, "mini", "none", tmp_path / "results")
    assert "name 'List' is not defined" in reasons[first.task_id]
    folder = evaluation.path.with_suffix("")
    with ProgressDisplay("mini", quiet=True) as display:
        target = tmp_path / "exported.jsonl"
        export(evaluation, folder, "evalplus", target, display)
    assert json.loads(target.read_text())["solution"] == hinted


@pytest.mark.usefixtures("shared_data")
def test_a_kept_verdict_holds_for_one_choice(
    humaneval: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "cache"))
    path = write_completions(tmp_path / "s.jsonl", [(FIRST, alone(by_id(humaneval, FIRST)))])
    results = tmp_path / "results"
    found = [
        scored(path, "humaneval", choice, results, no_cache=False)[1][FIRST] == "passed"
        for choice in ("prepended", "none", "prepended")
    ]
    assert found == [True, False, True]


def test_prepended_changes_nothing(mini: Benchmark) -> None:
    assert surround(mini, "prepended", "chat") is mini
    assert surround(mini, "prepended", "text") is mini
    # Pinned: results of earlier versions name it.
    assert mini.data_sha256.startswith("b2662441a50d")


@pytest.mark.usefixtures("shared_data")
def test_surroundings_that_differ_have_other_digests(humaneval: Benchmark) -> None:
    without = surround(humaneval, "none", "chat")
    continued = surround(humaneval, "none", "text")
    for problem, other, same in zip(
        humaneval.problems, without.problems, continued.problems, strict=True
    ):
        assert other.tests.preamble == ""
        differ = protocol.tests_digest(problem.tests) != protocol.tests_digest(other.tests)
        assert differ == bool(problem.tests.preamble)
        assert same.tests == problem.tests
        text = f"def {problem.tests.entry_point}(x: Deque): ..."  # which no prompt imports
        assert extract(text, problem, "chat").code.startswith("from typing import Deque")
        assert extract(text, other, "chat").code == extract(text, same, "chat").code == text


def test_code_that_is_not_the_prompts_stays() -> None:
    """Such as the names that BigCodeBench gives its module."""
    tests = Tests("f", "assert f() == os.sep", "import os\nimport re\n", prompt_code="import re\n")
    assert without_prompt_code(tests) == Tests("f", "assert f() == os.sep", "import os\n")


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that passes references alone."""

    def judge(
        _benchmark: str, programs: Mapping[SampleKey, str], _workers: int, _data: Path | None
    ) -> dict[SampleKey, PeerVerdict]:
        verdicts = {True: PeerVerdict(True), False: PeerVerdict(False, detail="base fail")}
        return {key: verdicts['"""' in code] for key, code in programs.items()}

    peers.names()
    monkeypatch.setitem(peers._items, "strict", judge)


@pytest.mark.usefixtures("strict")
def test_a_cross_check_recognises_what_the_prompt_brings(mini: Benchmark, tmp_path: Path) -> None:
    """The second is right in every way: nothing explains that it fails elsewhere."""
    problem = by_id(mini, "mini/19")
    assert "from typing import Callable" in problem.tests.preamble
    body = problem.reference.removeprefix(problem.prompt)
    lacking = f"def make_counter(step: int = 1) -> Callable[[], int]:\n{body}"
    right = f"from typing import Callable\n{lacking}"
    path = write_completions(tmp_path / "s.jsonl", [("mini/19", lacking), ("mini/19", right)])
    config = ScoreConfig(
        "mini", tmp_path / "results", samples_file=str(path),
        problems=ProblemSelection(tasks=("mini/19",)),
    )  # fmt: skip
    with ProgressDisplay("mini", quiet=True) as display:
        peer = peer_score(config, "strict", display)
        found = disagreements(config, score(config, display), peer, display)
    assert [one.sample for one in found] == [0, 1]
    assert "--prompt-imports none" in found[0].explained
    assert found[1].explained == ""

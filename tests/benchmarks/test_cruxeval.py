"""CRUXEval: references, upstream's prompts, and recorded verdicts of two models."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import assay
from assay import benchmarks
from assay.errors import UsageError
from assay.pipeline import ProblemSelection, ScoreConfig, score
from assay.progress import Silent
from assay.prompts import find_strategy, list_strategies
from assay.runs import RunReader
from assay.types import Benchmark
from tests.conftest import Cli, write_completions

NAMES = ("cruxeval-i", "cruxeval-o")
# Of the texts that upstream's prompts.py makes of all 800 problems.
UPSTREAM = {
    ("cruxeval-o", "upstream"): "25ee07c0a11b0c0afb53abf0715ee557b3a279c174603a7d7d0dcc599407908e",
    ("cruxeval-o", "upstream-cot"): (
        "00f1189887a0dec8f901a27bd1738c060e8fe3a0f68b697a109a2eabf84e96aa"
    ),
    ("cruxeval-i", "upstream"): "53c8482816922b783242158fd3ca65ec2ae7db4bb5ffa5cd4216dc839c3012f0",
    ("cruxeval-i", "upstream-cot"): (
        "d5b6b968bd0a37efb778cf385eef351835c2029268cd54e1c26880fb59db032d"
    ),
}
# Recorded as wrong under Python 3.8, where strings have no removeprefix and removesuffix.
NEWER_PYTHON = {"CRUXEval/296", "CRUXEval/409", "CRUXEval/531", "CRUXEval/548"}
CODELLAMA = "recorded/cruxeval-codellama7b"
QWEN = "recorded/cruxeval-qwen25coder-1.5b"


class Recorded(NamedTuple):
    task_id: str
    answer: str
    passed: bool


def read_json(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def recorded(path: Path) -> list[Recorded]:
    """Return the answers and verdicts of a file, in the order of the problems."""
    found = read_json(path)
    answers, verdicts = found["raw_generations"], found["raw_scored_generations"]
    return [
        Recorded(f"CRUXEval/{number}", answer, passed)
        for number in range(800)
        for answer, passed in zip(
            answers[f"sample_{number}"], verdicts[f"sample_{number}"], strict=True
        )
    ]


def disagreements(name: str, answers: list[Recorded]) -> set[Recorded]:
    """Return the answers whose verdict is another one here. Equal answers are judged once."""
    once = list(dict.fromkeys(answers))
    verdicts = assay.judge([(one.task_id, one.answer) for one in once], name)
    assert {v.status for v in verdicts} <= {"pass", "fail"}
    pairs = zip(once, verdicts, strict=True)
    return {one for one, verdict in pairs if (verdict.status == "pass") != one.passed}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_references_pass(name: str) -> None:
    found = benchmarks.load(name)
    verdicts = assay.judge([(p.task_id, p.reference) for p in found.problems], found)
    assert [v for v in verdicts if v.status != "pass"] == []
    assert len(verdicts) == 800
    assert {v.integrity for v in verdicts} == {"separated"}


def test_the_expected_output_is_not_in_the_programs_process() -> None:
    for problem in benchmarks.load("cruxeval-i").problems:
        output = problem.prompt.rpartition(" == ")[2]
        assert problem.tests.preamble == problem.prompt.rpartition("\nassert f(??)")[0]
        assert output not in problem.tests.code or len(output) < 3


@pytest.mark.parametrize(("name", "strategy"), UPSTREAM)
def test_upstreams_prompts_are_upstreams(name: str, strategy: str) -> None:
    found = benchmarks.load(name)
    build = find_strategy(strategy, found).build
    texts = [build(problem, "text").text for problem in found.problems]
    assert hashlib.sha256("".join(texts).encode()).hexdigest() == UPSTREAM[name, strategy]
    chat = build(found.problems[0], "chat")
    assert [m.role for m in chat.messages] == ["system", "user"]
    assert chat.messages[1].content == texts[0]
    assert chat.stop == ("[/ANSWER]",)


@pytest.mark.parametrize("name", NAMES)
def test_prompts_contain_the_problem_and_not_the_answer(name: str) -> None:
    found = benchmarks.load(name)
    assert list_strategies(found) == ["upstream-cot", "few-shot", "scot", "standard", "upstream"]
    for problem in found.problems[::40]:
        assert problem.date == "2024-01-05"
        for strategy in list_strategies(found):
            for form in ("chat", "text"):
                built = find_strategy(strategy, found).build(problem, form)
                text = built.text or built.messages[-1].content
                assert text.count(problem.prompt) == 1
                assert "??" in problem.prompt


def test_other_strategies_are_refused() -> None:
    found = benchmarks.load("cruxeval-o")
    with pytest.raises(UsageError, match=r"^cruxeval-o: has no prompt for the strategy 'cgo'\. "):
        find_strategy("cgo", found)
    with pytest.raises(UsageError, match=r"^mini: has no prompt for the strategy 'upstream'\. "):
        find_strategy("upstream", benchmarks.load("mini"))
    with pytest.raises(UsageError, match="unknown"):
        find_strategy("telepathy", found)


def test_recorded_outputs_have_the_same_verdicts(shared_data: Path) -> None:
    """Measured: 8,800 of 8,800, a second tuple being an assertion's message as it is upstream."""
    codellama = recorded(shared_data / CODELLAMA / "scored_output.json.gz")
    qwen = recorded(shared_data / QWEN / "output-cot-scored.json.gz")
    assert (len(codellama), len(qwen)) == (8000, 800)
    assert disagreements("cruxeval-o", [*codellama, *qwen]) == set()


@pytest.mark.slow
def test_some_recorded_inputs_have_the_same_verdicts(shared_data: Path) -> None:
    qwen = recorded(shared_data / QWEN / "input-cot-scored.json.gz")[1::10]
    assert disagreements("cruxeval-i", qwen) == {o for o in qwen if o.task_id in NEWER_PYTHON}


@pytest.mark.whole
def test_recorded_inputs_have_the_same_verdicts(shared_data: Path) -> None:
    """Measured: 8,796 of 8,800. The four need a newer Python than the one that judged them."""
    qwen = recorded(shared_data / QWEN / "input-cot-scored.json.gz")
    differing = disagreements("cruxeval-i", qwen)
    assert {one.task_id for one in differing} == NEWER_PYTHON
    code = {p.task_id: p.tests.preamble for p in benchmarks.load("cruxeval-i").problems}
    assert all(".remove" in code[one.task_id] and not one.passed for one in differing)
    codellama = recorded(shared_data / CODELLAMA / "scored_input.json.gz")
    assert disagreements("cruxeval-i", codellama) == set()


@pytest.fixture(params=["output", "input"])
def raw(request: pytest.FixtureRequest, shared_data: Path) -> tuple[str, Path]:
    return request.param, shared_data / QWEN


@pytest.mark.slow
def test_answers_are_found_in_raw_texts(raw: tuple[str, Path], tmp_path: Path, assay: Cli) -> None:
    """Every 8th text, from the model's raw continuation of the prompt to the result."""
    side, folder = raw
    name = f"cruxeval-{side[0]}"
    found = benchmarks.load(name)
    texts = read_json(folder / f"{side}-cot-raw.json.gz")
    chosen = found.problems[::8]
    samples = write_completions(
        tmp_path / "s.jsonl", [(p.task_id, _continuation(found, p.task_id, texts)) for p in chosen],
        "completion",
    )  # fmt: skip
    (tmp_path / "ids").write_text("\n".join(p.task_id for p in chosen))
    done = assay("score", samples, "--benchmark", name, "--from-file", tmp_path / "ids", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    before = recorded(folder / f"{side}-cot-scored.json.gz")[::8]
    passed = {p["task_id"]: p["passed"] for p in result["problems"]}
    differing = {one.task_id for one in before if passed[one.task_id] != one.passed}
    assert differing == ({"CRUXEval/296"} if side == "input" else set())
    assert result["results"]["invalid"] == 0
    assert result["results"]["integrity"]["separated"] >= 95


def _continuation(found: Benchmark, task_id: str, texts: dict[str, list[str]]) -> str:
    problem = next(p for p in found.problems if p.task_id == task_id)
    prompt = find_strategy("upstream-cot", found).build(problem, "text").text
    (text,) = texts[task_id.replace("CRUXEval/", "sample_")]
    assert text.startswith(prompt)
    return text.removeprefix(prompt)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("eval", "cruxeval-o", "--prompt-strategy", "cgo"),
            "assay: cruxeval-o: has no prompt for the strategy 'cgo'. "
            "Choose upstream-cot, few-shot, scot, standard, upstream.",
        ),
        (
            ("prompt", "humaneval", "0", "--strategy", "upstream-cot"),
            "assay: humaneval: has no prompt for the strategy 'upstream-cot'. "
            "Choose standard, cgo, few-shot, scot, upstream.",
        ),
        (
            ("eval", "cruxeval", "--problems", "1"),
            "assay: benchmark 'cruxeval': unknown. Did you mean cruxeval-o or cruxeval-i? Choose ",
        ),
        (
            ("eval", "cruxeval-o", "--task", "sample_1"),
            "assay: sample_1: is not a task of cruxeval-o. Give ids such as CRUXEval/0.",
        ),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[str, ...], message: str, assay: Cli) -> None:
    with contextlib.suppress(UsageError):  # "cruxeval" is one of the mistakes
        benchmarks.load(arguments[1])
    done = assay(*arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(message)


def test_the_prompt_command_shows_both_forms(assay: Cli) -> None:
    benchmarks.load("cruxeval-o")
    done = assay("prompt", "cruxeval-o", "0", "--strategy", "upstream-cot")
    assert done.returncode == 0, done.stderr
    assert "You are an expert at Python programming" in done.stdout
    assert "[THOUGHT]" in done.stdout


def test_a_damaged_file_is_reported(tmp_path: Path, assay: Cli) -> None:
    (tmp_path / "data" / "cruxeval").mkdir(parents=True)
    (tmp_path / "data" / "cruxeval" / "cruxeval.jsonl").write_text('{"id": 1}\n')
    done = assay("eval", "cruxeval-i", "--data", tmp_path / "data")
    assert done.returncode == 2
    assert "is damaged or another version (expected cruxeval 190faf16: 1 records" in done.stderr


@pytest.mark.parametrize("name", ["cruxeval-o", pytest.param("cruxeval-i", marks=pytest.mark.slow)])
def test_answers_are_judged_alike_in_judge_processes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal answers are executed once, also if another process executes them."""
    monkeypatch.setattr("assay.sandbox.kinds.process.count_judges", lambda *_: 2)
    monkeypatch.setattr("assay.sandbox.judges.processes.FEW", 0)
    problems = benchmarks.load(name).problems[:12]
    answers = [(p.task_id, f"[ANSWER]{p.reference}[/ANSWER]") for p in problems]
    wrong = [(p.task_id, "[ANSWER]f( 17 )[/ANSWER]") for p in problems]
    path = write_completions(tmp_path / "s.jsonl", [*answers, *answers, *wrong])
    config = ScoreConfig(
        name, tmp_path / "results", samples_file=str(path), workers=4,
        problems=ProblemSelection("12"),
    )  # fmt: skip
    verdicts = RunReader(score(config, Silent()).folder).verdicts
    assert len(verdicts) == 36
    passed = {key for key, verdict in verdicts.items() if verdict.status == "pass"}
    assert passed >= {(p.task_id, sample) for p in problems for sample in (0, 1)}
    others = [verdict for key, verdict in verdicts.items() if key[1] == 2]
    if name == "cruxeval-o":
        assert {verdict.reason for verdict in others} == {"unparsable"}
    assert {verdict.status for verdict in others} == {"fail"}

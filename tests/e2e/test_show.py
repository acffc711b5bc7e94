"""`assay show`: the samples of a run as a list, and one of them with everything known of it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from assay import benchmarks
from assay.protocol import PromptSettings, Protocol
from assay.runs import RunWriter, open_run
from assay.types import Completion, Limits, Program, Verdict
from tests.conftest import write_completions
from tests.in_process import Done, run_command
from tests.runs.test_folder import MODEL
from tests.test_protocol import BASE

WRONG = "def celsius_to_fahrenheit(celsius):\n    print('from the program')\n    return 1\n"
RIGHT = "def celsius_to_fahrenheit(celsius):\n    return celsius * 9 / 5 + 32\n"


def asked(benchmark: str) -> Protocol:
    """Return the protocol of a run in which a model is asked by the standard strategy."""
    loaded = benchmarks.load(benchmark)
    return dataclasses.replace(
        BASE,
        benchmark=benchmark,
        data_sha256=loaded.data_sha256,
        prompt_strategy="standard",
        prompt_strategy_version=1,
        asking=PromptSettings("chat", "own", system="Be brief."),
        limits=Limits(),
    )


def completion(task_id: str, text: str, **changes: object) -> Completion:
    made = Completion(task_id, 0, text, "stop", 10, 20, 100.0, 0, False)
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


@pytest.fixture
def run(tmp_path: Path) -> RunWriter:
    """Return a run that is still being written: one verdict, one completion without, one error."""
    writer = open_run(tmp_path / "results", asked("mini"), MODEL)
    first = completion("mini/0", f"Here it is:\n```python\n{WRONG}```")
    writer.add_completion(first)
    writer.add_program(first, Program(WRONG, "fenced"))
    writer.add_verdict(
        Verdict(
            "mini/0", 0, "fail", "wrong-answer", "expected 32, got 1", "celsius_to_fahrenheit(0)",
            0.01, 0.02, 5.0, "separated", "fenced", {"base": (1, 3)}, "from the program\n",
        )
    )  # fmt: skip
    writer.add_completion(completion("mini/1", "hello", finish_reason="length"))
    writer.add_completion(completion("mini/2", "", finish_reason="error", error="server gone"))
    writer.add_verdict(Verdict("mini/2", 0, "invalid", "generation-error", "server gone"))
    return writer


def show(run: RunWriter, *arguments: str) -> Done:
    return run_command("show", run.path.name, *arguments, folder=run.path.parents[1])


def test_a_running_run_is_listed(run: RunWriter) -> None:
    done = show(run)
    assert done.code == 0
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[1][:4] == ["mini/0", "0", "fail", "wrong-answer"]
    assert rows[2][:4] == ["mini/1", "0", "not-judged", "not-judged"]
    assert rows[3][:4] == ["mini/2", "0", "invalid", "generation-error"]
    assert done.out.splitlines()[-1].startswith("3 of 3 samples of ")


def test_a_sample_is_shown_with_everything_known_of_it(run: RunWriter) -> None:
    printed = show(run, "mini/0").out
    for part in (
        "--- Prompt (system)\nBe brief.",
        "--- Prompt (user)\n",
        "def celsius_to_fahrenheit(celsius: float) -> float:",
        "--- Answer (20 tokens, ended by itself)\nHere it is:",
        "--- Program (extraction rule fenced)\n1  def celsius",
        "--- Output of the program (its end)\nfrom the program",
        "--- Verdict: fail\nreason  wrong-answer\ntest    celsius_to_fahrenheit(0)",
        "detail  expected 32, got 1",
        "cases   base 1/3",
        "used    0.01 of 10 s CPU time, 0.02 of 30 s wall time, 5 of 512 MB memory",
    ):
        assert part in printed


def test_a_task_may_be_named_by_its_last_part(run: RunWriter) -> None:
    assert show(run, "0").out == show(run, "mini/0").out


def test_samples_without_verdict_or_completion_are_shown(run: RunWriter) -> None:
    waiting = show(run, "mini/1").out
    assert "cut off at the token limit" in waiting
    assert "No program is stored." in waiting
    assert "The sample has not been judged yet." in waiting
    assert "error: server gone" in show(run, "mini/2").out


def test_filters_select_samples(run: RunWriter) -> None:
    failed = show(run, "--failed").out
    assert "mini/0" in failed
    assert "mini/2" in failed
    assert "mini/1" not in failed
    assert "· mini/2 ·" in show(run, "--reason", "generation-error").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mini/9"], "mini/9: is not a task of "),
        (["--reason", "timeout"], "reasons in this run are generation-error, not-judged"),
        (["mini/0", "--sample", "3"], "none of its 3 samples match the filters"),
    ],
)
def test_what_is_not_there_is_one_line(run: RunWriter, arguments: list[str], message: str) -> None:
    done = show(run, *arguments)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.splitlines()) == 1


def test_an_unknown_run_is_one_line(tmp_path: Path) -> None:
    done = run_command("show", "nothing", folder=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "nothing: is not a run." in done.err


def test_json_has_the_same_facts(run: RunWriter) -> None:
    listed = json.loads(show(run, "--json").out)
    assert [one["status"] for one in listed] == ["fail", "not-judged", "invalid"]
    one = json.loads(show(run, "mini/0", "--json").out)
    assert one["found"]["program"] == {"code": WRONG, "rule": "fenced"}
    assert one["found"]["verdict"]["output"] == "from the program\n"
    assert one["prompt"]["messages"][0] == {"role": "system", "content": "Be brief."}


def test_data_of_another_version_gives_no_prompt(tmp_path: Path) -> None:
    protocol = dataclasses.replace(asked("mini"), data_sha256="0" * 64)
    with_other_data = open_run(tmp_path / "results", protocol, MODEL)
    with_other_data.add_completion(completion("mini/0", "x"))
    printed = show(with_other_data, "mini/0").out
    assert "--- Prompt\nThe run used another version of the data of mini." in printed


def test_a_task_that_the_benchmark_does_not_have_gives_no_prompt(tmp_path: Path) -> None:
    """A task without a problem must not end in a traceback."""
    foreign = open_run(tmp_path / "results", asked("mini"), MODEL)
    foreign.add_completion(completion("other/0", "x"))
    assert "The prompt cannot be built again: " in show(foreign, "other/0").out


def test_a_run_scored_from_a_file_is_shown(tmp_path: Path) -> None:
    samples = write_completions(tmp_path / "s.jsonl", [("mini/0", WRONG), ("mini/0", RIGHT)])
    scored = run_command(
        "score", samples, "--benchmark", "mini", "--partial", "--json", folder=tmp_path, seconds=120
    )
    run = json.loads(scored.out)["run"]
    listed = run_command("show", run, "0", folder=tmp_path).out.splitlines()
    assert [line.split()[1:4] for line in listed[1:3]] == [
        ["0", "fail", "wrong-answer"],
        ["1", "pass", "passed"],
    ]
    file = tmp_path / "results" / f"{run}.json"
    printed = run_command("show", file, "0", "--sample", "0", folder=tmp_path).out
    assert "The completions were recorded elsewhere, so the prompt is not known." in printed
    assert "--- Output of the program (its end)\nfrom the program" in printed
    assert "celsius_to_fahrenheit(0) gave 1" in printed
    passed = run_command("show", file, "0", "--sample", "1", folder=tmp_path).out
    assert "--- Verdict: pass" in passed


def test_a_finished_run_shows_its_marks(tmp_path: Path) -> None:
    answers = write_completions(tmp_path / "a.jsonl", [("mini/0", RIGHT), ("mini/1", "x = 1")])
    scored = run_command("score", answers, "--benchmark", "mini", "--partial", folder=tmp_path)
    name = Path(scored.out.split()[-1]).stem
    listed = run_command("show", name, folder=tmp_path).out.splitlines()
    assert [line.partition(":")[0] for line in listed[-2:]] == ["!partial", "recorded"]
    title = run_command("show", name, "mini/0", folder=tmp_path).out.splitlines()[0]
    assert title.endswith("pass · !partial recorded")

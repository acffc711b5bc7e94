"""Coverage: a score says what it is about, and what is missing is never passed over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.types import Benchmark
from tests.conftest import references, write_completions
from tests.in_process import Done, run_command
from tests.runs.consistent import rehash

INCOMPLETE = 3


@pytest.fixture
def whole(mini: Benchmark, tmp_path: Path) -> Path:
    return write_completions(tmp_path / "whole.jsonl", references(mini))


@pytest.fixture
def half(mini: Benchmark, tmp_path: Path) -> Path:
    return write_completions(tmp_path / "half.jsonl", references(mini)[:8])


def assay(folder: Path, *arguments: str | Path) -> Done:
    return run_command(*arguments, folder=folder, seconds=120)


def result_of(folder: Path, *arguments: str | Path, code: int = 0) -> dict[str, Any]:
    done = assay(folder, *arguments, "--json")
    assert done.code == code, done
    result: dict[str, Any] = json.loads(done.out)
    return result


def test_generation_errors_make_a_score_incomplete(tmp_path: Path, half: Path) -> None:
    """12 of 20 errors must not give "pass@1 100.0 %, 8 problems" with exit code 0."""
    done = assay(tmp_path, "eval", "mini", "--model", f"replay:{half}")
    assert done.code == INCOMPLETE
    heading, *lines = done.out.splitlines()
    assert heading == "incomplete: 8 of 20 problems judged. The score covers only these."
    marks = [line.strip() for line in lines if "not publishable" in line]
    assert "marked    !partial (not publishable): 8 of 20 problems were judged" in marks
    assert "marked    !partial (not publishable): 12 of 20 samples have no verdict" in marks
    assert "incomplete: 8 of 20 problems judged" in assay(tmp_path, "history").out


def test_the_results_file_counts_what_is_missing(tmp_path: Path, half: Path, whole: Path) -> None:
    asked = ("eval", "mini", "--model")
    result = result_of(tmp_path, *asked, f"replay:{half}", code=INCOMPLETE)
    assert result["coverage"] == {
        "benchmark_problems": 20, "selected_problems": 20, "judged_problems": 8, "samples": 20,
        "judged_samples": 8, "complete": False,
    }  # fmt: skip
    assert result["publishable"] is False
    complete = result_of(tmp_path, *asked, f"replay:{whole}")
    assert complete["coverage"]["complete"] is True
    assert complete["not_publishable"] == ["the completions were recorded elsewhere"]


def own_benchmark(folder: Path, problems: int, wrong: int) -> tuple[Path, Path]:
    """Return a benchmark in which some references fail, and right answers to all its problems."""
    path = folder / "own.jsonl"
    lines = [
        {
            "task_id": f"own/{n}",
            "prompt": f'def f(x):\n    """Return x + {n}."""\n',
            "entry_point": "f",
            "cases": [f"f(1) == {1 + n}"],
            "reference": f"return x + {n if n >= wrong else -1}",
        }
        for n in range(problems)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    answers = [(f"own/{n}", f"def f(x):\n    return x + {n}\n") for n in range(problems)]
    return path, write_completions(folder / "answers.jsonl", answers)


@pytest.mark.parametrize(("wrong", "code"), [(1, 0), (2, INCOMPLETE)])
def test_a_few_unscorable_problems_leave_a_score_complete(
    tmp_path: Path, wrong: int, code: int
) -> None:
    """To try them again changes nothing. If many references fail, the machine is at fault."""
    benchmark, samples = own_benchmark(tmp_path, 10, wrong)
    asked = ("eval", str(benchmark), "--model", f"replay:{samples}", "--n-samples", "1")
    done = assay(tmp_path, *asked)
    assert done.code == code, done
    unscorable = ", ".join(f"own/{n}" for n in range(wrong))
    assert f"  unscorable {unscorable}: the reference fails here" in done.out.splitlines()
    assert done.out.startswith("incomplete: ") is bool(code)
    result = result_of(tmp_path, *asked, code=code)
    assert result["coverage"] == {
        "benchmark_problems": 10, "selected_problems": 10, "judged_problems": 10 - wrong,
        "samples": 10, "judged_samples": 10 - wrong, "unscorable_problems": wrong,
        "complete": not code,
    }  # fmt: skip
    assert f"{10 - wrong} of 10 problems were judged" in result["not_publishable"]


def test_the_tsv_of_an_incomplete_run_is_incomplete(tmp_path: Path, half: Path) -> None:
    """``passk`` must not say "10 problems" with exit code 0."""
    asked = ("eval", "mini", "--model", f"replay:{half}")
    run = result_of(tmp_path, *asked, code=INCOMPLETE)["run"]
    done = assay(tmp_path, "passk", "--tsv", f"results/{run}.tsv")
    assert done.code == INCOMPLETE
    assert done.out.startswith("incomplete: 8 of 20 problems judged. The score covers only these")
    counted = result_of(tmp_path, "passk", "--tsv", f"results/{run}.tsv", code=INCOMPLETE)
    assert counted["coverage"]["judged_problems"] == 8


@pytest.mark.slow
def test_missing_samples_of_a_problem_are_missing(tmp_path: Path, mini: Benchmark) -> None:
    texts = [*references(mini), *references(mini)[:-1]]
    samples = write_completions(tmp_path / "uneven.jsonl", texts)
    done = assay(tmp_path, "eval", "mini", "--model", f"replay:{samples}", "--n-samples", "2",
                 "--temperature", "0.8")  # fmt: skip
    assert done.code == INCOMPLETE
    assert done.out.startswith(
        "incomplete: 39 of 40 samples judged (all samples of 19 of 20 problems). The score covers"
    )


def test_the_gap_counts_samples_if_problems_have_several(tmp_path: Path, whole: Path) -> None:
    """A score over 20 problems cannot have the heading "0 of 20 problems judged"."""
    done = assay(tmp_path, "eval", "mini", "--model", f"replay:{whole}", "--n-samples", "2")
    assert done.code == INCOMPLETE
    assert done.out.startswith("incomplete: 20 of 40 samples judged (all samples of 0 of 20 prob")


@pytest.mark.slow
def test_settings_that_recorded_completions_ignore_are_named(tmp_path: Path, whole: Path) -> None:
    """They have no effect, and two recorded samples are not alike because of greedy decoding."""
    asked = ("eval", "mini", "--model", f"replay:{whole}", "--problems", "1")
    done = assay(tmp_path, *asked, "--n-samples", "2")
    assert "greedy" not in done.err
    assert "has no effect" not in done.err
    done = assay(tmp_path, *asked, "--temperature", "0.5", "--max-tokens", "9", "--seed", "1")
    for flag in ("--temperature", "--max-tokens", "--seed"):
        assert f"{flag}: has no effect on recorded completions" in done.err
    assert "--top-k" not in done.err


def test_a_selection_of_problems_is_named(tmp_path: Path, whole: Path) -> None:
    """``--samples 3`` must not have the headline of the whole benchmark."""
    for flag, label in (("--problems", "[:3]"), ("--samples", "[:4]")):
        count = label[2]
        done = assay(tmp_path, "eval", "mini", "--model", f"replay:{whole}", flag, count)
        assert done.code == 0
        assert done.out.startswith(f"mini{label} · ")
        assert f"!partial (not publishable): {count} of 20 problems were selected" in done.out
    listed = assay(tmp_path, "history").out
    assert "mini[:3]" in listed
    assert "mini[:4]" in listed


def test_tasks_are_selected_by_id_and_from_a_file(tmp_path: Path, whole: Path) -> None:
    (tmp_path / "ids.txt").write_text("mini/4\nmini/2\n")
    by_file = result_of(tmp_path, "score", whole, "--benchmark", "mini", "--from-file", "ids.txt")
    assert [p["task_id"] for p in by_file["problems"]] == ["mini/2", "mini/4"]
    assert by_file["config"]["problem_selection"] == "[mini/2,mini/4]"
    by_id = result_of(
        tmp_path, "score", whole, "--benchmark", "mini", "--task", "mini/2", "--task", "mini/4"
    )
    assert by_id["run"] == by_file["run"]  # the same problems: the same run
    done = assay(tmp_path, "score", whole, "--benchmark", "mini", "--task", "mini/99")
    assert (done.code, done.err) == (
        2, "assay: mini/99: is not a task of mini. Give ids such as mini/0.\n",
    )  # fmt: skip


def test_half_a_file_is_not_taken_for_a_whole_one(tmp_path: Path, half: Path) -> None:
    """A note beside a score is not enough."""
    asked = ("score", half, "--benchmark", "mini")
    done = assay(tmp_path, *asked)
    assert done.code == 2
    assert done.err.splitlines()[-1].endswith(
        "has samples of 8 of 20 problems of mini. Give the whole file, or --partial to score what "
        "it has."
    )
    partial = assay(tmp_path, *asked, "--partial")
    assert partial.code == INCOMPLETE
    assert partial.out.startswith("incomplete: 8 of 20 problems judged")


def test_uneven_numbers_of_samples_are_not_whole(tmp_path: Path, mini: Benchmark) -> None:
    texts = [*references(mini), *references(mini)[:-2]]
    samples = write_completions(tmp_path / "uneven.jsonl", texts)
    done = assay(tmp_path, "score", samples, "--benchmark", "mini")
    assert done.code == 2
    assert "has fewer than 2 samples of 2 of 20 problems of mini" in done.err


def test_a_line_cut_in_half_is_not_dropped_without_a_word(tmp_path: Path, whole: Path) -> None:
    content = whole.read_text()
    whole.write_text(content[:-30])
    asked = ("score", whole, "--benchmark", "mini")
    done = assay(tmp_path, *asked)
    assert done.code == 2
    assert (
        "line 20: is cut off. Give the whole file, or leave the line out with assay score "
        "--partial."
    ) in done.err
    assert assay(tmp_path, *asked, "--partial").code == INCOMPLETE
    whole.write_text(content.replace("\n", "garbage\n", 1))  # not at the end: damage
    assert "not valid JSON" in assay(tmp_path, *asked, "--partial").err


def test_incomplete_results_are_compared_on_common_problems(
    tmp_path: Path, half: Path, whole: Path
) -> None:
    runs = [
        result_of(tmp_path, "score", file, "--benchmark", "mini", "--partial", code=code)["run"]
        for file, code in ((half, INCOMPLETE), (whole, 0))
    ]
    done = assay(tmp_path, "compare", *runs, "--force")
    assert done.code == 0
    assert (
        "warning: A is incomplete (8 of 20 problems judged), so only the 8 problems that were "
        "judged in both are compared"
    ) in done.err
    assert "over 8 problems" in done.out


def test_recorded_texts_carry_their_origin(tmp_path: Path, half: Path, whole: Path) -> None:
    """``eval --model replay:FILE`` has another hash than a model that is asked the standard way."""
    first, second = (
        result_of(tmp_path, "eval", "mini", "--model", f"replay:{file}", "--problems", "8")
        for file in (half, whole)
    )
    assert first["protocol"]["origin"] == first["model_identity"]["weights_sha256"]
    assert first["protocol"]["hash"] != second["protocol"]["hash"]
    assert first["protocol"]["prompt_strategy"] == "recorded"
    assert first["config"]["max_tokens"] == 0  # nobody knows
    done = assay(tmp_path, "compare", first["run"], second["run"])
    assert done.code == 2
    assert "protocols differ (origin: " in done.err


@pytest.mark.slow
def test_a_run_without_select_keeps_what_was_selected(tmp_path: Path, mini: Benchmark) -> None:
    """The second run deleted ``best_of_n`` from the results file."""
    samples = write_completions(tmp_path / "s.jsonl", [*references(mini), *references(mini)])
    asked = ("score", samples, "--benchmark", "mini")
    first = result_of(tmp_path, *asked, "--select", "first")
    again = result_of(tmp_path, *asked)
    assert again["run"] == first["run"]
    assert again["results"]["best_of_n"] == first["results"]["best_of_n"]


@pytest.mark.slow
def test_an_earlier_choice_that_cannot_be_made_again_does_not_end_a_run(
    tmp_path: Path, mini: Benchmark
) -> None:
    """Requests sent again without --select have no log-probabilities to choose by."""
    samples = write_completions(tmp_path / "two.jsonl", references(mini) * 2)
    asked = ("score", samples, "--benchmark", "mini")
    first = result_of(tmp_path, *asked, "--select", "first")
    path = tmp_path / "results" / f"{first['run']}.json"
    path.write_text(path.read_text().replace('"method": "first"', '"method": "logprob"'))
    done = assay(tmp_path, *asked)
    assert done.code == 0
    assert "by logprob is not computed: " in done.err
    assert assay(tmp_path, *asked, "--select", "logprob").code == 2


def test_results_of_another_protocol_version_are_their_own_kind(
    tmp_path: Path, whole: Path
) -> None:
    result = result_of(tmp_path, "score", whole, "--benchmark", "mini")
    path = tmp_path / "results" / f"{result['run']}.json"
    old = {k: v for k, v in result.items() if k not in ("coverage", "not_publishable", "marks")}
    for name in ("version", "asking", "origin"):
        del old["protocol"][name]
    old["protocol"] = rehash(old["protocol"])
    old_path = path.with_name("mini_20250101_000000.json")
    old_path.write_text(json.dumps({**old, "run": old_path.stem}))
    assert "mini_20250101_000000" in assay(tmp_path, "history").out
    done = assay(tmp_path, "compare", old_path.stem, result["run"])
    assert (done.code, "protocols differ (version: 1 / 3)" in done.err) == (2, True)
    assert assay(tmp_path, "compare", old_path.stem, old_path.stem).code == 0

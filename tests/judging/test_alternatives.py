"""Programs that are cut in doubt: both forms may be judged, and the verdict says which counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay import runs
from assay.cli._progress import ProgressDisplay
from assay.pipeline import ScoreConfig, score
from assay.pipeline.score import Dependence, dependences
from assay.report.export import export
from assay.types import Benchmark, Verdict
from tests.conftest import references, write_completions

FUNCTION = """\
FACTORS = []


def celsius_to_fahrenheit(celsius):
    return celsius * FACTORS[0] + 32


"""
RIGHT = "FACTORS.append(9 / 5)\n"
WRONG = "FACTORS.append(3)\n"
# Here the demonstration is what fails.
SHOWN = """\
import sys


def initials(full_name):
    return "".join(word[0].upper() for word in full_name.split())


initials = initials(open("/path/to/names.txt").read())
sys.stdout.write(initials)
"""


# The prompt of this problem shows an example; without the last statement nothing is right.
FILLED = """\
LETTERS = {}


def initials(full_name):
    return "".join(LETTERS[word[0]] for word in full_name.split())


LETTERS.update({letter: letter.upper() for letter in "abcdefghijklmnopqrstuvwxyz"})
LETTERS.update({letter: letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"})
"""
BROKEN = "def initials(full_name):\n    return full_name[1000]\n"


def config_for(
    folder: Path, mini: Benchmark, answers: tuple[tuple[str, str], ...], select: str = ""
) -> ScoreConfig:
    """Return how to score each answer as one sample, and the references of all other problems."""
    answered = {task_id for task_id, _ in answers}
    others = [one for one in references(mini) if one[0] not in answered]
    path = write_completions(folder / "samples.jsonl", [*answers, *others])
    return ScoreConfig(
        "mini", folder / "results", samples_file=str(path), partial=True, select=select, workers=1
    )


def score_with(
    folder: Path, mini: Benchmark, *answers: tuple[str, str], select: str = ""
) -> runs.Result:
    with ProgressDisplay("mini", quiet=True) as display:
        return score(config_for(folder, mini, answers, select), display)


def read_verdicts(evaluation: runs.Result) -> dict[tuple[str, int], Verdict]:
    return runs.RunReader(evaluation.path.with_suffix("")).verdicts


@pytest.mark.parametrize("cached", [False, True])
def test_the_verdict_says_which_form_was_used(
    mini: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    if cached:
        monkeypatch.delenv("ASSAY_NO_CACHE", raising=False)
        monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "cache"))
    answers = [
        ("mini/0", FUNCTION + RIGHT), ("mini/0", FUNCTION + WRONG), ("mini/0", FUNCTION + RIGHT),
        ("mini/1", SHOWN), ("mini/1", SHOWN), ("mini/1", SHOWN),
    ]  # fmt: skip
    for _ in range(1 + cached):
        found = read_verdicts(score_with(tmp_path, mini, *answers))
        assert len(found) == len(answers) + len(mini.problems) - 2
        told = [(found["mini/0", n].status, found["mini/0", n].rule) for n in range(3)]
        assert told == [("pass", "uncut"), ("fail", "demo"), ("pass", "uncut")]
        shown = [(found["mini/1", n].status, found["mini/1", n].rule) for n in range(3)]
        assert shown == [("pass", "demo")] * 3


def test_a_program_that_is_wrong_in_both_forms_fails_as_the_first(
    mini: Benchmark, tmp_path: Path
) -> None:
    found = read_verdicts(score_with(tmp_path, mini, ("mini/0", FUNCTION + WRONG)))
    verdict = found["mini/0", 0]
    assert (verdict.status, verdict.rule) == ("fail", "demo")
    assert "IndexError" in verdict.detail


def test_the_form_that_passed_is_exported(mini: Benchmark, tmp_path: Path) -> None:
    evaluation = score_with(tmp_path, mini, ("mini/0", FUNCTION + RIGHT), ("mini/1", SHOWN))
    target = tmp_path / "samples_out.jsonl"
    with ProgressDisplay("mini", quiet=True) as display:
        export(evaluation, evaluation.folder, "evalplus", target, display)
    lines = map(json.loads, target.read_text().splitlines())
    exported = {one["task_id"]: one["solution"] for one in lines}
    assert exported["mini/0"] == FUNCTION + RIGHT
    assert "/path/to" not in exported["mini/1"]


@pytest.mark.parametrize("method", ["examples", "agreement"])
def test_a_choice_considers_the_uncut_form(mini: Benchmark, tmp_path: Path, method: str) -> None:
    """The cut form alone fails at the example as the others do, and the first would be chosen."""
    answers = [("mini/1", text) for text in (BROKEN, BROKEN, FILLED, FILLED)]
    evaluation = score_with(tmp_path, mini, *answers, select=method)
    assert read_verdicts(evaluation)["mini/1", 2].rule == "uncut"
    assert evaluation.results.best_of_n is not None
    assert evaluation.results.best_of_n.chosen["mini/1"] == 2


def test_a_choice_keeps_the_cut_form_where_the_uncut_one_does_no_better(
    mini: Benchmark, tmp_path: Path
) -> None:
    answers = [("mini/1", BROKEN), ("mini/1", SHOWN)]
    evaluation = score_with(tmp_path, mini, *answers, select="agreement")
    assert evaluation.results.best_of_n is not None
    assert evaluation.results.best_of_n.chosen["mini/1"] == 1


def test_leaving_a_rule_out_leaves_the_uncut_form_in(mini: Benchmark, tmp_path: Path) -> None:
    """A pass that needs its demonstration is not lost without a rule that it does not need."""
    function = FUNCTION.partition("\n\n\n")[2]
    twice = FUNCTION + function + RIGHT
    config = config_for(tmp_path, mini, (("mini/0", twice),))
    with ProgressDisplay("mini", quiet=True) as display:
        evaluation = score(config, display)
        assert read_verdicts(evaluation)["mini/0", 0].rule == "repeated+uncut"
        found = {one.rule: one for one in dependences(config, evaluation, display)}
    assert found["repeated"] == Dependence("repeated", samples=1, lost=0, gained=0)
    assert found["demo"] == Dependence("demo", samples=1, lost=0, gained=0)

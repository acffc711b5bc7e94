"""Comparisons of results: what decides, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from assay import api, runs
from assay.data import codec
from assay.data.documents import Rest
from assay.errors import UsageError
from assay.report.comparison import describe_decision, summarize_comparison, summarize_family
from assay.runs import Result
from assay.runs.compare import tally_problems
from assay.runs.result import ProblemResult, ScoreResult
from assay.runs.results import parse_result, render_result
from assay.scoring import Tally, estimates
from assay.scoring.comparison import group_verdicts
from tests.in_process import run_command
from tests.runs.consistent import agree

GOLDEN = Path(__file__).parent / "golden" / "result_all.json"


def result(
    name: str,
    passed: Sequence[int],
    n: int = 1,
    clusters: Sequence[str | None] = (),
    first: int = 0,
) -> Result:
    """Return a result with these numbers of passes of its problems."""
    content = {**json.loads(GOLDEN.read_text()), "run": name}
    base = parse_result(content, Path(f"{name}.json"))
    problems = tuple(
        ProblemResult(f"t/{first + i}", n, c, cluster=clusters[i] if clusters else None)
        for i, c in enumerate(passed)
    )
    tallies = [Tally(p.task_id, p.n, p.passed, p.cluster) for p in problems]
    scores = ScoreResult(
        total=len(problems), completed=0, passed=sum(c > 0 for c in passed),
        samples=n * len(problems), samples_passed=sum(passed), errors=0, invalid=0, truncated=0,
        pass_at={found.k: found for found in estimates(tallies)},
    )  # fmt: skip
    made = replace(base, run=name, model=name, problems=problems, coverage=None, results=scores)
    return agree(replace(made, rest=Rest()))


def flips(gained: int, lost: int, both: int, neither: int) -> tuple[Result, Result]:
    before = [0] * gained + [1] * lost + [1] * both + [0] * neither
    after = [1] * gained + [0] * lost + [1] * both + [0] * neither
    return result("a", before), result("b", after)


def test_one_sample_has_the_exact_test_and_tangos_interval() -> None:
    found = runs.compare(*flips(10, 3, 130, 21))
    assert found.difference == pytest.approx(7 / 164)
    assert (found.interval.low, found.interval.high) == pytest.approx((-0.0005, 0.0932), abs=5e-5)
    assert (found.interval.method, found.test.method) == ("tango", "mcnemar-exact")
    assert found.p_value == found.test.p_value == pytest.approx(0.092285, abs=1e-6)
    assert found.mid_p == pytest.approx(0.057373, abs=1e-6)
    assert (found.decision, len(found.gained), len(found.lost)) == ("undecided", 10, 3)
    assert found.noise is None


def test_no_flips_are_equivalent_but_not_proven_equal() -> None:
    """NeMo's interval collapses to [0, 0] here, which passes at any margin."""
    a, b = flips(0, 0, 135, 29)
    found = runs.compare(a, b)
    assert (found.decision, found.interval.method) == ("equivalent", "newcombe-10")
    assert found.interval.high == pytest.approx(0.0189, abs=5e-5)
    assert runs.compare(a, b, margin=0.015).decision == "undecided"


def test_several_samples_are_decided_by_the_mean_and_not_by_signs() -> None:
    a = result("a", [0] * 10 + [9] * 3 + [5] * 50, n=10)
    b = result("b", [1] * 10 + [0] * 3 + [5] * 50, n=10)
    found = runs.compare(a, b)
    assert (len(found.gained), len(found.lost)) == (10, 3)
    assert found.difference < 0
    assert found.p_value == pytest.approx(0.258, abs=5e-4)
    assert (found.test.method, found.interval.method) == ("sign-flip-exact", "t-clustered-score")
    assert found.noise is not None
    assert found.noise.total**2 == pytest.approx(found.noise.problems**2 + found.noise.sampling**2)


def test_a_shown_difference_can_be_within_the_margin() -> None:
    found = runs.compare(*flips(12, 0, 600, 588), margin=0.03)
    assert (found.decision, found.is_within_margin) == ("better", True)
    assert describe_decision("better", 0.03, True) == "B is better, by less than 3 points"


def test_problems_of_one_original_count_once() -> None:
    """Seven languages of each problem, which are passed or failed together."""
    clusters = [f"original/{i // 7}" for i in range(140)]
    before = [int(i // 7 < 4) for i in range(140)]
    after = [int(i // 7 < 8) for i in range(140)]
    alone = runs.compare(result("a", before), result("b", after))
    found = runs.compare(result("a", before), result("b", after, clusters=clusters))
    assert (alone.clusters, alone.design_effect, alone.decision) == (140, 1.0, "better")
    assert (found.clusters, found.difference) == (20, alone.difference)
    assert found.design_effect > 6
    assert found.interval.half_width > 2 * alone.interval.half_width
    assert found.p_value == pytest.approx(2 / 2**4)  # four flips of originals
    assert found.decision == "undecided"


def test_clusters_are_in_the_file_only_where_they_are_set() -> None:
    found = result("a", [1, 0], clusters=["o", None])
    first, second = render_result(found)["problems"]
    assert (first["cluster"], "cluster" in second) == ("o", False)
    again = parse_result(render_result(found), found.path)
    assert again.problems == found.problems


def test_different_problems_are_refused_unless_asked_for() -> None:
    a, b = result("a", [1] * 30 + [0] * 10), result("b", [0] * 30 + [1] * 10, first=40)
    with pytest.raises(UsageError, match="no judged problem in common.*--unpaired"):
        runs.compare(a, b)
    found = runs.compare(a, b, unpaired=True)
    assert (found.is_paired, found.gained, found.test.method) == (False, (), "welch")
    assert found.decision == "worse"
    text = "\n".join(summarize_comparison(found, a, b))
    assert "over 40 and 40 different problems" in text


def test_unpaired_counts_every_original_once() -> None:
    names = [f"o{number // 10}" for number in range(40)]
    a = result("a", [1] * 20 + [0] * 20)
    b = result("b", [1] * 30 + [0] * 10, first=40)
    alone = runs.compare(a, b, unpaired=True)
    assert (alone.decision, alone.clusters, alone.design_effect) == ("better", 40, 1.0)
    a, b = (
        result("a", [1] * 20 + [0] * 20, clusters=names),
        result("b", [1] * 30 + [0] * 10, first=40, clusters=names),
    )
    found = runs.compare(a, b, unpaired=True)
    assert (found.clusters, found.decision) == (4, "undecided")
    assert found.design_effect > 5
    assert found.interval.half_width > 1.5 * alone.interval.half_width
    assert found.p_value > 0.3 > alone.p_value


@pytest.mark.parametrize("margin", [float("nan"), -0.02, 2.0, float("inf")])
def test_a_margin_is_a_share(margin: float) -> None:
    a, b = result("a", [1, 0]), result("b", [1, 1])
    with pytest.raises(UsageError, match=r"Give 0.02 for two points"):
        runs.compare(a, b, margin=margin)
    with pytest.raises(UsageError, match=r"Give 0.02 for two points"):
        runs.compare_family(a, [b], margin=margin)


def test_two_constant_runs_are_no_proof() -> None:
    tiny = runs.compare(result("a", [0, 0]), result("b", [1, 1], first=2), unpaired=True)
    assert tiny.p_value == pytest.approx(2 / 6)
    uneven = runs.compare(result("a", [0] * 3), result("b", [1, 1], first=3), unpaired=True)
    assert uneven.p_value == pytest.approx(1 / 10)
    same = runs.compare(result("a", [1, 1]), result("b", [1, 1], first=2), unpaired=True)
    assert same.p_value == 1.0
    large = runs.compare(result("a", [0] * 600), result("b", [1] * 600, first=600), unpaired=True)
    assert 0 <= large.p_value < 1e-300


def test_one_file_with_clusters_is_enough_for_groups() -> None:
    names = [f"o{number // 20}" for number in range(60)]
    old = result("old", [1] * 20 + [0] * 40)  # by a version that did not write clusters
    new = result("new", [1] * 60, clusters=names)
    for results in ((old, new), (new, old)):
        groups = runs.compare_family(results[0], [results[1]]).groups
        assert len(set(groups.letters.values())) == 1, "three originals cannot show a difference"


def test_unpaired_needs_larger_differences_than_paired() -> None:
    a, b = flips(12, 2, 80, 70)
    paired, unpaired = runs.compare(a, b), runs.compare(a, b, unpaired=True)
    assert paired.difference == pytest.approx(unpaired.difference)
    assert unpaired.interval.half_width > 2 * paired.interval.half_width
    assert unpaired.p_value > 10 * paired.p_value


def test_several_results_are_corrected_for_their_number() -> None:
    base = result("base", [1] * 40 + [0] * 60)
    same = result("same", [1] * 40 + [0] * 60)
    good = result("good", [1] * 70 + [0] * 30)
    some = [result(f"some{i}", [1] * 46 + [0] * 54) for i in range(3)]
    family = runs.compare_family(base, [same, good, *some])
    decisions = {m.comparison.run_b: m.decision for m in family.members}
    assert decisions == {
        "same": "undecided", "good": "better", "some0": "undecided", "some1": "undecided",
        "some2": "undecided",
    }  # fmt: skip
    alone = runs.compare(base, some[0])
    assert alone.p_value == pytest.approx(0.03125)
    assert alone.decision == "better"
    member = family.members[2]
    assert member.adjusted_p_value == pytest.approx(4 * 0.03125)
    assert member.comparison.interval.level == pytest.approx(0.99)
    assert family.groups.letters["good"] == "a"
    assert "a" not in family.groups.letters["base"]
    assert json.loads(codec.dumps(family))["method"] == "holm"
    lines = summarize_family(family, [base, same, good, *some])
    assert "better" in lines[3]


def test_groups_need_no_baseline() -> None:
    models = [
        result(name, [1] * n + [0] * (200 - n))
        for name, n in zip("abc", (150, 148, 60), strict=True)
    ]
    table = {model.run: list(tally_problems(model).values()) for model in models}
    assert group_verdicts(table).letters == {"a": "a", "b": "a", "c": "b"}


def test_what_is_printed() -> None:
    a, b = flips(10, 3, 130, 21)
    lines = summarize_comparison(runs.compare(a, b), a, b)
    assert lines[2] == (
        "B - A  +4.3 points [-0.0, +9.3] (95 %, Tango) over 164 problems, p = 0.0923 "
        "(exact McNemar test), mid-p 0.0574"
    )
    assert (
        lines[3] == "decision  undecided: the difference can be 0, and it can be 2 points or more"
    )
    assert lines[4].startswith("gained 10 (6.1 %): t/0, t/1, ")
    assert "could show  a difference of 6.2 points or more, with 80 % power" in lines


def test_python_and_command_line_agree(tmp_path: Path) -> None:
    names: list[str] = []
    for one in flips(6, 1, 30, 30):
        written = replace(one, run=f"mini_20260101_00000{len(names)}")
        written = replace(written, path=tmp_path / f"{written.run}.json")
        runs.write_result(written)
        names.append(str(written.path))
    found = api.compare(*names, margin=0.05)
    done = run_command("compare", *names, "--margin", "5", "--json", folder=tmp_path)
    assert json.loads(done.out) == json.loads(codec.dumps(found))
    done = run_command("compare", *names, names[0], folder=tmp_path)
    assert (done.code, "baseline" in done.out) == (0, True)
    done = run_command("compare", *names, names[0], "--unpaired", folder=tmp_path)
    assert (done.code, "compares two runs" in done.err) == (2, True)

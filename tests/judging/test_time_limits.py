"""CPU limits: derived from the references by a rule, or fixed by ``--time-limit``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay import benchmarks
from assay.errors import UsageError
from assay.judging.references import limit_cpu_s
from assay.pipeline import ScoreConfig, score
from assay.pipeline.problems import with_fixed_limit
from assay.progress import Silent
from assay.runs import Result, RunReader
from assay.types import Benchmark, TimeRule
from tests.conftest import write_completions
from tests.in_process import run_command

ENDLESS = "def celsius_to_fahrenheit(celsius):\n    while True: pass\n"
BUSY = "import time\nwhile time.process_time() < {}: pass\n"


@given(
    st.floats(0.1, 10), st.floats(1, 1000), st.floats(0, 100), st.floats(0, 100), st.floats(10, 99)
)
def test_a_limit_is_between_the_least_and_the_fixed_one_and_grows_with_the_reference(
    least_s: float, factor: float, reference_s: float, more_s: float, fixed_s: float
) -> None:
    rule = TimeRule(least_s, factor)
    limit_s = limit_cpu_s(rule, "a", reference_s, fixed_s)
    assert least_s <= limit_s <= fixed_s
    assert limit_s >= min(fixed_s, factor * reference_s)
    assert limit_cpu_s(rule, "a", reference_s + more_s, fixed_s) >= limit_s


def test_the_rule_never_allows_more_than_the_fixed_limit() -> None:
    assert limit_cpu_s(TimeRule(3.0, 20.0), "a", 0.0, 2.0) == 2.0


def test_exempt_tasks_keep_the_fixed_limit() -> None:
    rule = TimeRule(1.0, 20.0, exempt=("a",))
    assert [limit_cpu_s(rule, task_id, 0.01, 10.0) for task_id in "ab"] == [10.0, 1.0]


def judge(folder: Path, texts: list[tuple[str, str]], time_limit: float | None = None) -> Result:
    samples = write_completions(folder / "samples.jsonl", texts)
    config = ScoreConfig(
        "mini", folder / "results", samples_file=str(samples), partial=True, no_cache=True,
        time_limit=time_limit,
    )  # fmt: skip
    return score(config, Silent())


def test_a_program_that_never_ends_is_stopped_by_the_rule(tmp_path: Path, mini: Benchmark) -> None:
    result = judge(tmp_path, [("mini/0", ENDLESS), ("mini/1", mini.problems[1].reference)])
    run = RunReader(result.folder)
    assert mini.time_rule is not None
    assert result.protocol.time_rule == mini.time_rule
    assert set(run.about.time_limits) == {"mini/0", "mini/1"}
    limit_s = run.about.time_limits["mini/0"]
    assert mini.time_rule.least_s <= limit_s < mini.limits.cpu_s
    verdict = run.verdicts["mini/0", 0]
    assert (verdict.status, verdict.reason) == ("fail", "timeout")
    assert verdict.detail == f"used {limit_s:g} s of CPU time"
    assert run.verdicts["mini/1", 0].status == "pass"
    shown = run_command("show", str(result.folder), "mini/0", folder=tmp_path).out
    assert f" of {limit_s:g} s CPU time" in shown


@pytest.mark.slow
def test_a_resumed_run_keeps_its_limits(tmp_path: Path, mini: Benchmark) -> None:
    slow = BUSY.format(1.5) + mini.problems[0].reference
    texts = [("mini/0", slow)]
    run_file = judge(tmp_path, texts).folder / "run.json"
    about = json.loads(run_file.read_text())
    run_file.write_text(json.dumps({**about, "time_limits": {"mini/0": 3.0}}))
    (run_file.parent / "verdicts.jsonl").write_text("")
    again = judge(tmp_path, texts)
    assert again.folder == run_file.parent
    assert RunReader(again.folder).verdicts["mini/0", 0].status == "pass"
    assert RunReader(again.folder).about.time_limits == {"mini/0": 3.0}


@pytest.mark.slow
def test_a_fixed_limit_has_no_rule(tmp_path: Path, mini: Benchmark) -> None:
    slow = BUSY.format(1.5) + mini.problems[0].reference
    results = {s: judge(tmp_path, [("mini/0", slow)], s) for s in (None, 1.0, 10.0)}
    verdicts = {s: RunReader(r.folder).verdicts["mini/0", 0] for s, r in results.items()}
    assert {s: v.reason for s, v in verdicts.items()} == {
        None: "timeout", 1.0: "timeout", 10.0: "passed",
    }  # fmt: skip
    fixed = results[10.0]
    assert fixed.protocol.limits == dataclasses.replace(mini.limits, cpu_s=10.0)
    assert "time_rule" not in json.loads((fixed.folder / "protocol.json").read_text())
    assert "time_limits" not in json.loads((fixed.folder / "run.json").read_text())
    assert len({result.protocol.hash for result in results.values()}) == 3


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), 3601.0])
def test_impossible_limits_are_refused(seconds: float, mini: Benchmark) -> None:
    with pytest.raises(UsageError, match="--time-limit .*: must be above 0 and at most 3600"):
        with_fixed_limit(mini, seconds)


def test_the_wall_limit_leaves_room_for_a_long_cpu_limit(mini: Benchmark) -> None:
    assert with_fixed_limit(mini, 10).limits == mini.limits
    assert with_fixed_limit(mini, 100).limits.wall_s == 125


@pytest.mark.slow
def test_the_command_takes_auto_or_seconds(tmp_path: Path) -> None:
    samples = write_completions(tmp_path / "s.jsonl", [("mini/0", ENDLESS)])
    asked = ("score", str(samples), "--benchmark", "mini", "--partial", "--json", "--time-limit")
    short = json.loads(run_command(*asked, "0.5", folder=tmp_path).out)
    assert short["protocol"]["limits"]["cpu_s"] == 0.5
    auto = json.loads(run_command(*asked, "auto", folder=tmp_path).out)
    assert auto["protocol"]["time_rule"]["least_s"] == 1.0
    wrong = run_command(*asked, "long", folder=tmp_path)
    assert wrong.code == 2
    assert "'long' is neither auto nor a number" in wrong.err


@pytest.mark.parametrize(
    ("name", "exempt"),
    [("humaneval", ("HumanEval/129",)), ("mbpp", ()), ("mbpp-sanitized", ()), ("mini", ())],
)
def test_short_benchmarks_have_the_rule(name: str, exempt: tuple[str, ...]) -> None:
    assert benchmarks.load(name).time_rule == TimeRule(1.0, 100.0, exempt)


@pytest.mark.slow
def test_benchmarks_with_a_limit_per_call_have_none() -> None:
    """One call that never ends is stopped by its own limit there."""
    assert benchmarks.load("humanevalplus").time_rule is None

"""Times of a run are wall times: what overlaps counts once, and parts are added."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from assay.pipeline.times import BusyTime, OpenTime, PartClock
from assay.report.text import describe_times
from assay.runs import PartTimes, RunWriter, read_result
from assay.runs.result import Timing
from tests.e2e.test_resume import start, wait_for_lines
from tests.in_process import run_command
from tests.report.run_folders import toy_samples, write_run


def test_activities_that_overlap_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum over a batch's requests can be 85 minutes of generating in a run of 30 seconds."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    busy = BusyTime(100.0)
    for now, seconds in ((110.0, 8.0), (111.0, 9.0), (112.0, 1.0), (120.0, 2.0), (121.0, 50.0)):
        busy.add(seconds)
        if now == 120.0:
            assert busy.total() == pytest.approx(10.0 + 2.0)  # 102 to 112, and 118 to 120
            assert busy.first() == 102.0
    assert busy.total() == pytest.approx(21.0)  # never more than since the start


def test_judging_lasts_while_any_program_is_with_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts arrive in batches, so that the last one's time alone is too short."""
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    busy = OpenTime()
    for at, change in ((1.0, 1), (2.0, 49), (4.0, -49), (5.0, -1), (9.0, 1)):
        now = at
        busy.change(change)
    now = 10.0
    assert busy.total() == 5.0  # 1 to 5, and 9 to 10


def test_a_part_is_recorded_while_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times recorded at the end alone are lost if the part ends with SIGKILL."""
    write_run(tmp_path, toy_samples(), finished=False)
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    run = RunWriter(folder)
    now = 10.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    clock = PartClock(run, 8.0)
    for at, seconds in ((13.0, 1.0), (13.5, 1.5), (15.0, 1.5), (16.5, 6.0)):
        now = at
        clock.generating.add(seconds)
        clock.record()
    assert list(run.read_parts()) == [
        PartTimes(0.0, 1.0, 0.0, 5.0),
        PartTimes(0.0, 2.0, 0.0, 2.0),
        PartTimes(0.0, 3.0, 0.0, 1.5),
    ]  # not at 13.5; at 16.5 a request ends that began first
    clock.record(ended=True)
    assert list(run.read_parts())[3:] == [PartTimes(0.5, 0.0, 0.0, 0.0)]
    run.close()


@pytest.mark.parametrize(
    ("timing", "line"),
    [
        (Timing(inference_s=3000.0), ""),  # by an earlier version
        (
            Timing(0, 1234, loading_s=3.0, generating_s=30.0, judging_s=25.0, whole_s=41.2),
            "41 s: waiting for the model 3.0 s, generating 30 s, judging 25 s (at the same time); "
            "tokens: 1,234 generated",
        ),
        (
            Timing(loading_s=0.0, generating_s=0.0, judging_s=0.05, whole_s=2.0, reused_tokens=80),
            "2.0 s: judging 50 ms; tokens: 80 reused",
        ),
    ],
)  # fmt: skip
def test_the_line_of_times(timing: Timing, line: str) -> None:
    assert describe_times(timing) == line


def test_parts_of_a_resumed_run_are_added(tmp_path: Path) -> None:
    unfinished = write_run(tmp_path, toy_samples(), finished=False)
    assert unfinished is None
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    for times in (PartTimes(1.0, 5.0, 4.0, 9.0), PartTimes(0.5, 2.0, 1.0, 3.0)):
        run = RunWriter(folder)
        run.add_part(times)
        run.close()
    with (folder / "parts.jsonl").open("a") as file:
        file.write('{"loading_s": 1')  # killed while it was written
    run = RunWriter(folder)
    assert list(run.read_parts()) == [PartTimes(1.0, 5.0, 4.0, 9.0), PartTimes(0.5, 2.0, 1.0, 3.0)]
    run.close()


def test_a_run_records_its_times(tmp_path: Path) -> None:
    from assay import evaluate, load_benchmark
    from tests.conftest import references, write_completions

    mini = load_benchmark("mini")
    samples = write_completions(tmp_path / "s.jsonl", references(mini))
    result = evaluate(
        "mini", model=f"replay:{samples}", results_dir=tmp_path, workers=1, use_cache=False
    )
    timing = result.timing
    assert timing.whole_s is not None
    assert timing.judging_s is not None
    assert 0 < timing.judging_s <= timing.whole_s
    assert timing.generating_s == 0  # recorded elsewhere
    again = evaluate(
        "mini", model=f"replay:{samples}", results_dir=tmp_path, workers=1, use_cache=False
    )
    assert replace(again.timing) == timing  # nothing was done
    lines = (result.folder / "parts.jsonl").read_text().splitlines()
    assert sum(json.loads(line)["whole_s"] for line in lines) == pytest.approx(timing.whole_s)


@pytest.mark.slow
@pytest.mark.model
def test_times_of_a_real_engine_are_those_of_the_clock(tmp_path: Path) -> None:
    """A run that is killed and resumed, and two benchmarks with one load."""
    killed, asked = tmp_path / "killed", ("mini", "--problems", "8", "--max-tokens", "160")
    killed.mkdir()
    begun = time.monotonic()
    process = start(killed, *asked)
    wait_for_lines(killed, "parts.jsonl", 1, process)
    process.kill()
    process.communicate()
    seconds = time.monotonic() - begun
    (parts,) = killed.glob("results/*/parts.jsonl")
    recorded = json.loads(parts.read_text().splitlines()[0])
    assert 0 < recorded["generating_s"] <= recorded["whole_s"] <= seconds
    out, err = start(killed, *asked).communicate(timeout=300)
    seconds = time.monotonic() - begun
    (path,) = killed.glob("results/*.json")
    timing = read_result(path).timing
    assert recorded["whole_s"] < _whole(timing) <= seconds, err
    assert f"  time      {describe_times(timing)}" in out.splitlines()
    shown = run_command("show", path, folder=killed)
    assert f"time  {describe_times(timing)}" in shown.out.splitlines()
    both = tmp_path / "both"
    both.mkdir()
    begun = time.monotonic()
    start(both, "humaneval", "mini", "--problems", "3", "--max-tokens", "48").communicate(
        timeout=300
    )
    seconds = time.monotonic() - begun
    times = [read_result(path).timing for path in sorted(both.glob("results/*.json"))]
    assert len(times) == 2
    assert sum(map(_whole, times)) <= seconds
    for one in times:
        assert one.generating_s is not None
        assert one.inference_s / 16 <= one.generating_s < one.inference_s  # three at once


def _whole(timing: Timing) -> float:
    """Return the seconds of a run, if its parts fit into them."""
    assert timing.loading_s is not None
    assert timing.generating_s is not None
    assert timing.judging_s is not None
    assert timing.whole_s is not None
    assert timing.loading_s >= 0 < min(timing.generating_s, timing.judging_s)
    # The model is waited for before it generates; programs are judged at any time.
    assert timing.loading_s + timing.generating_s <= timing.whole_s + 0.01
    assert timing.judging_s <= timing.whole_s
    return timing.whole_s

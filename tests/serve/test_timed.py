"""Programs whose tests measure time are judged alone everywhere, and hold nobody back for long."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from typing import Any

import httpx
import pytest

from assay import benchmarks
from assay.judging import JudgeTask
from assay.reward import Reward
from assay.sandbox import open_sandbox
from assay.sandbox.host import warm
from assay.serve.stage import JudgeWork, make_task
from assay.types import Benchmark, Job, Limits, Problem, Program, Tests
from assay.work import lock
from tests.serve.conftest import READ_S, judge, serving

TIMED, OTHER = "mini/0", "mini/1"
ENTRIES = {TIMED: "celsius_to_fahrenheit", OTHER: "initials"}
TESTS = {name: Tests(entry, f"assert {entry}(1)") for name, entry in ENTRIES.items()}
# Each writes down when it ran, by a clock that all programs share.
SHOW = """import os, time
def {entry}(*_):
    start = time.monotonic()
    time.sleep({seconds})
    print("ran", start, time.monotonic(), flush=True)
    os._exit(1)
"""
Times = list[tuple[str, float, float]]


@pytest.fixture(autouse=True)
def timed(monkeypatch: pytest.MonkeyPatch) -> None:
    load = benchmarks.load

    def load_timed(*arguments: Any, **options: Any) -> Benchmark:
        return replace(load(*arguments, **options), timed=frozenset({TIMED}))

    monkeypatch.setattr(benchmarks, "load", load_timed)


def show(task_id: str, seconds: float = 0.3, number: int = 0) -> str:
    return f"# {number}\n" + SHOW.format(seconds=seconds, entry=ENTRIES[task_id])


def read_times(outputs: Iterable[tuple[str, str]]) -> Times:
    found = []
    for task_id, output in outputs:
        _, start, end = output.split()
        found.append((task_id, float(start), float(end)))
    return found


def assert_alone(times: Times) -> None:
    alone = [one for one in times if one[0] == TIMED]
    assert len(alone) == 2
    for one in alone:
        others = [other for other in times if other is not one]
        assert all(other[2] <= one[1] or other[1] >= one[2] for other in others), times


TASKS = (OTHER, OTHER, TIMED, OTHER, TIMED, OTHER)


@pytest.mark.parametrize("kind", ["program", "completion"])
def test_the_service_judges_them_alone(kind: str) -> None:
    programs = [
        {"benchmark": "mini", "task_id": task_id, kind: show(task_id, number=number)}
        for number, task_id in enumerate(TASKS)
    ]
    with serving(workers=2) as server, httpx.Client(base_url=server.url, timeout=READ_S) as client:
        verdicts = judge(client, programs)
    assert_alone(read_times((v["task_id"], v["output"]) for v in verdicts))


def test_rewards_judge_them_alone() -> None:
    texts = [show(task_id, number=number) for number, task_id in enumerate(TASKS)]
    with closing(Reward(benchmark="mini", workers=2)) as reward:
        scores = reward.score(list(TASKS), texts)
    assert_alone(read_times((s.verdict.task_id, s.verdict.output) for s in scores))


def test_a_remote_sandbox_judges_them_alone() -> None:
    jobs = [
        Job(task_id, number, Program(show(task_id), "x"), TESTS[task_id], alone=task_id == TIMED)
        for number, task_id in enumerate(TASKS)
    ]  # fmt: skip
    with serving(workers=2) as server, closing(open_sandbox(f"remote:{server.url}", 0)) as sandbox:
        verdicts = list(sandbox.judge(jobs))
    assert_alone(read_times((v.task_id, v.output) for v in verdicts))


def test_a_slow_one_holds_others_back_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "ALONE_S", 1.0)
    slow = {"benchmark": "mini", "task_id": TIMED, "program": show(TIMED, 6.0)}
    fast = {"benchmark": "mini", "task_id": OTHER, "program": show(OTHER, 0.1)}
    with serving(workers=1) as server, httpx.Client(base_url=server.url, timeout=READ_S) as client:
        times = read_times((v["task_id"], v["output"]) for v in judge(client, [slow, *[fast] * 9]))
    (_, start, end), *others = times
    later = [other for other in others if other[2] > start]
    assert later, times
    assert all(start + 0.9 < other[1] < other[2] < end for other in later), times


def test_those_that_wait_to_be_alone_hold_nobody_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that run have to end first, which can take minutes."""
    monkeypatch.setattr(lock, "DRAIN_S", 0.5)
    slow = {"benchmark": "mini", "task_id": OTHER, "program": show(OTHER, 6.0)}
    alone = {"benchmark": "mini", "task_id": TIMED, "program": show(TIMED, 0.1)}
    fast = {"benchmark": "mini", "task_id": OTHER, "program": show(OTHER, 0.1)}
    with serving(workers=2) as server, httpx.Client(base_url=server.url, timeout=READ_S) as client:
        judge(client, [fast])
        started = time.monotonic()
        times = read_times(
            (v["task_id"], v["output"]) for v in judge(client, [slow, alone, fast, fast, fast])
        )
    assert time.monotonic() - started < 30
    held, waited, *others = times
    assert waited[1] >= held[2]
    assert all(other[2] < held[2] for other in others), times


@pytest.mark.parametrize(("task_says", "work_says"), [(True, False), (False, True), (False, False)])
def test_a_task_or_a_request_says_what_is_judged_alone(task_says: bool, work_says: bool) -> None:
    """Requests of SandboxFusion's API have no field for it."""
    task = JudgeTask(Problem(TIMED, "", "", TESTS[TIMED]), alone=task_says)
    work = JudgeWork(1, "program", "", Limits(), TIMED, alone=work_says)
    assert make_task(task, work).alone == (task_says or work_says)

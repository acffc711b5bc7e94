"""Progress that tells the truth: stages, speed and time left, by a clock of the tests' own."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli import _pace, _progress
from assay.cli._pace import (
    GenerationProgress,
    RunProgress,
    is_line_due,
    render_seconds,
    seconds_left,
)
from assay.cli._progress import ProgressDisplay
from assay.models import EngineOptions, open_model, watch
from assay.models.model import EngineFacts
from assay.models.workers.engine_messages import EngineWorkerSettings, Reply
from assay.models.workers.process import EngineProcess, EngineWorker
from assay.progress import Silent
from assay.scoring import estimates, tally
from assay.types import Completion, Decoding, Prompt, Request, Verdict
from tests.in_process import run_command
from tests.models.faulty_server import serving


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def completion(tokens: int = 50, ms: float = 1000.0, error: str | None = None) -> Completion:
    return Completion("t", 0, "", "stop", 10, tokens, ms, 0, used_gpu=False, error=error)


PASS = Verdict("t", 0, "pass", "passed", wall_s=0.5)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def display(clock: Clock) -> ProgressDisplay:
    """In a log, as tests have no terminal, and without the thread that ticks."""
    return ProgressDisplay("mini", quiet=False, clock=clock)


def lines(captured: pytest.CaptureFixture[str]) -> list[str]:
    out, err = captured.readouterr()
    assert out == ""
    return err.splitlines()


def pass_time(clock: Clock, display: ProgressDisplay, seconds: int) -> None:
    for _ in range(seconds):
        clock.now += 1
        display.tick()


def test_ten_minutes_of_loading_show_as_loading(
    clock: Clock, display: ProgressDisplay, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without such lines, a log has no line in that time."""
    display.begin(20, [], 20)
    display.loading()
    pass_time(clock, display, 600)
    shown = lines(capsys)
    assert shown[0] == "mini loading the model 0:10  judged 0/20  pass@1 -  invalid 0"
    assert shown[1].startswith("mini loading the model 0:40 ")
    assert len(shown) == 20


def test_loading_is_neither_in_the_speed_nor_in_the_time_left(
    clock: Clock, display: ProgressDisplay, capsys: pytest.CaptureFixture[str]
) -> None:
    """If loading counts as part of the first completion, a run of seven minutes is to last 66."""
    display.begin(20, [], 20)
    display.loading()
    pass_time(clock, display, 600)
    display.generating(0)
    for number in range(10):
        pass_time(clock, display, 6)
        display.completed(completion(tokens=60))
        display.judged(replace(PASS, task_id=f"t/{number}"), False)
    assert "ETA" not in "".join(lines(capsys)[:21])
    pass_time(clock, display, 30)
    last = lines(capsys)[-1]
    assert last == (
        "mini generating 10/20  judged 10/20  pass@1 100.0 % [72.2, 100.0]  invalid 0  9 tok/s  "
        "ETA 1:10"
    )


def test_tokens_of_unfinished_completions_count(
    clock: Clock, display: ProgressDisplay, capsys: pytest.CaptureFixture[str]
) -> None:
    display.begin(20, [], 20)
    display.loading()
    display.generating(0)
    clock.now += 20
    display.generating(3000)
    display.tick()
    assert lines(capsys) == ["mini generating 0/20  judged 0/20  pass@1 -  invalid 0  150 tok/s"]


def test_the_speed_stays_when_all_is_generated(clock: Clock, display: ProgressDisplay) -> None:
    display.begin(2, [], 2)
    display.generating(0)
    clock.now += 10
    for _ in range(2):
        display.completed(completion(tokens=100))
    clock.now += 1000
    assert "judged 0/2  pass@1 -  invalid 0  20 tok/s" in display._progress.text(clock.now)


def test_an_engine_that_reports_nothing_began_with_its_first_answer(
    clock: Clock, display: ProgressDisplay
) -> None:
    display.begin(20, [], 20)
    clock.now += 60
    assert "waiting for the model 1:00" in display._progress.text(clock.now)
    display.completed(completion(tokens=100, ms=4000))
    assert "25 tok/s" in display._progress.text(clock.now)


def test_what_an_earlier_run_or_the_cache_had_is_not_in_the_time_left(clock: Clock) -> None:
    run = RunProgress(1000, GenerationProgress(0, clock.now))
    run.resume([PASS] * 500)
    for _ in range(400):
        run.judge(PASS, clock.now, cached=True)
    assert run.seconds_left(clock.now + 100) is None
    for number in range(1, 11):
        run.judge(PASS, clock.now + 2 * number, cached=False)
    assert run.seconds_left(clock.now + 20) == pytest.approx(90 * 18.5 / 10)


def test_failed_requests_are_not_in_the_time_left(clock: Clock) -> None:
    generation = GenerationProgress(100, clock.now)
    generation.report(0, clock.now)
    for _ in range(50):
        generation.add(completion(0, 0.0, "refused"), clock.now)
    for _ in range(10):
        generation.add(completion(), clock.now + 20)
    assert generation.seconds_left(clock.now + 20) == pytest.approx(40 * 20 / 10)


def test_judging_can_take_longer_than_generating(clock: Clock) -> None:
    run = RunProgress(100, GenerationProgress(100, clock.now))
    run.generation.report(0, clock.now)
    for _ in range(50):
        run.generation.add(completion(), clock.now + 20)
    for number in range(1, 11):
        run.judge(PASS, clock.now + 2 * number, cached=False)
    assert run.generation.seconds_left(clock.now + 20) == pytest.approx(20)
    assert run.seconds_left(clock.now + 20) == pytest.approx(90 * 18.5 / 10)


def test_judging_that_keeps_up_does_not_set_the_time_left(clock: Clock) -> None:
    """Only five of 115 verdicts are not cached; their rate alone gives 35 minutes instead of 2."""
    run = RunProgress(164, GenerationProgress(164, clock.now))
    run.generation.report(0, clock.now)
    for number in range(1, 116):
        run.generation.add(completion(), clock.now + 2 * number)
        run.judge(PASS, clock.now + 2 * number, cached=number % 20 != 0)
    generating = run.generation.seconds_left(clock.now + 230)
    assert generating == pytest.approx(49 * 2)
    assert run.seconds_left(clock.now + 230) == generating


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, 1e6))
def test_no_time_left_before_it_means_something(done: int, left: int, seconds: float) -> None:
    found = seconds_left(done, left, seconds)
    assert (found is None) == (done < 5 or seconds < 10 or done < 0.02 * (done + left))
    assert found is None or found >= 0


def generated(lengths: list[int], slots: int) -> Iterator[tuple[float, GenerationProgress]]:
    """Generate completions of these lengths, so many at a time; yield every second."""
    generation, now, total = GenerationProgress(len(lengths), 0.0), 600.0, 0
    waiting = iter(lengths)
    unfinished = [[length, 0] for length in itertools.islice(waiting, slots)]
    generation.report(0, now)
    while unfinished:
        now += 1
        for one in unfinished:
            one[1] += 10
            total += 10
        generation.report(total, now)
        for one in [one for one in unfinished if one[1] >= one[0]]:
            generation.add(completion(one[0]), now)
            unfinished.remove(one)
            unfinished += [[length, 0] for length in itertools.islice(waiting, 1)]
        yield now, generation


@pytest.mark.parametrize("kind", ["alike", "mixed", "capped"])
def test_the_time_left_is_about_right(kind: str) -> None:
    draw = random.Random(1)
    lengths_of: dict[str, Callable[[], int]] = {
        "alike": lambda: 200,
        "mixed": lambda: min(512, int(draw.gammavariate(3, 70)) + 5),
        "capped": lambda: 512 if draw.random() < 0.3 else draw.randint(40, 200),
    }
    lengths = [lengths_of[kind]() for _ in range(164)]
    shown = [(now, g.seconds_left(now)) for now, g in generated(lengths, 16)]
    end = shown[-1][0]
    told = [(end - now, left) for now, left in shown if left is not None]
    assert len(told) > 0.8 * len(shown)
    for truth, left in told:
        assert left < 2.5 * truth + 20
        assert left > truth / 2.5 - 20


def test_lines_in_a_log_are_rare() -> None:
    assert not is_line_due(9.9, 0.0, None)
    assert is_line_due(10.0, 0.0, None)
    assert not is_line_due(39.9, 0.0, 10.0)
    assert is_line_due(40.0, 0.0, 10.0)
    assert [render_seconds(s) for s in (0, 59.9, 61, 3600, 36061)] == [
        "0:00", "0:59", "1:01", "1:00:00", "10:01:01",
    ]  # fmt: skip


def test_work_of_known_size(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    display = ProgressDisplay("perplexity", quiet=False, clock=clock)
    display.loading()
    pass_time(clock, display, 45)
    for done in range(100, 2100, 100):
        clock.now += 1
        display.preparing("perplexity", done, 10_000)
    display.tick()
    pass_time(clock, display, 20)
    assert lines(capsys) == [
        "perplexity loading the model 0:10",
        "perplexity loading the model 0:40",
        "perplexity 2,000/10,000  ETA 1:41",
    ]


def test_the_score_so_far_has_the_interval_of_the_result(clock: Clock) -> None:
    """Samples of one problem are not independent: the interval is that of the results file."""
    verdicts = [Verdict(f"t/{n % 5}", n // 5, "pass" if n % 3 else "fail", "") for n in range(20)]
    run = RunProgress(30, GenerationProgress(0, clock.now))
    run.resume(verdicts[:7])
    for verdict in verdicts[7:]:
        run.judge(verdict, clock.now, cached=False)
    run.judge(Verdict("t/9", 0, "invalid", "sandbox-error"), clock.now, cached=False)
    (found,) = estimates(tally([f"t/{n}" for n in range(5)], verdicts), (1,))
    low, high = (100 * end for end in found.interval)
    shown = f"pass@1 {100 * found.value:.1f} % [{low:.1f}, {high:.1f}]  invalid 1"
    assert run.text(clock.now) == f"judged 21/30  {shown}"


def test_a_batch_shows_completions_alone(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    display = ProgressDisplay("in.jsonl", quiet=False, judges=False, clock=clock)
    display.begin(20, [], 15)
    display.loading()
    pass_time(clock, display, 12)
    display.generating(0)
    for _ in range(10):
        clock.now += 4
        display.completed(completion(tokens=40))
    display.completed(completion(error="refused"))
    display.tick()
    assert lines(capsys) == [
        "resuming: 5 of 20 completions are done",
        "in.jsonl 5/20  loading the model 0:10",
        "in.jsonl 16/20  10 tok/s  ETA 0:16",
    ]


def test_steps_before_a_run_have_a_name_and_a_time_left(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    display = ProgressDisplay("mini", quiet=False, clock=clock)
    for done in range(1, 21):
        clock.now += 1
        display.preparing("checking the references:", done, 100)
    display.tick()
    assert lines(capsys) == ["mini checking the references: 20/100  ETA 1:20"]


def test_quiet_displays_print_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay("mini", quiet=True, clock=clock) as display:
        display.begin(1, [], 1)
        display.loading()
        pass_time(clock, display, 100)
        display.judged(PASS, False)
    assert lines(capsys) == []


def test_a_display_needs_no_thread(allow_threads: Callable[[int], None]) -> None:
    allow_threads(0)
    with ProgressDisplay("mini", quiet=False):
        pass


@pytest.mark.parametrize("as_json", [False, True])
def test_a_log_has_lines_while_nothing_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    """Lines must not depend on verdicts alone."""
    pytest.importorskip("httpx", reason="the openai engine needs httpx (the openai extra)")
    monkeypatch.setattr(_pace, "FIRST_LINE_S", 0.5)
    monkeypatch.setattr(_pace, "NEXT_LINE_S", 0.5)
    monkeypatch.setattr(_progress, "TICK_S", 0.05)
    with serving(delay_s=1.5) as server:
        done = run_command(
            "eval", "mini", "--model", "openai:", "--base-url", server.url, "--samples", "1",
            *["--json"] * as_json, folder=tmp_path,
        )  # fmt: skip
    assert done.code == 0
    assert ("mini waiting for the model 0:0" in done.err) == (not as_json)
    assert "mini waiting" not in done.out


def test_workers_report_tokens_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "counting.py").write_text(
        "from assay.models.workers import lines as worker_lines\n"
        "worker_lines.REPORT_S = 0.0\n"
        "from assay.models.model import EngineFacts\n"
        "from assay.models.workers.engine_messages import EngineWorkerSettings, Reply\n"
        "lines = worker_lines.Lines(EngineWorkerSettings)\n"
        "lines.ready(EngineFacts(), used_gpu=False, in_hand=1)\n"
        "lines.count(3)\n"
        "worker_lines.REPORT_S = 3600.0\n"
        "lines.count(4)\n"
        "lines.reply(Reply(0))\n"
        "lines.requests.get()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    process = EngineProcess(EngineWorker("counting", "a test", "nothing", EngineFacts))
    process.load(EngineWorkerSettings(""))
    reported: list[int] = []
    process.on_generated = reported.append
    try:
        process.wait_until_loaded()
        assert process.reply(Reply) == Reply(0)
    finally:
        process.close()
    assert reported == [3]


@pytest.mark.slow
@pytest.mark.model
def test_the_default_model_reports() -> None:
    class Watcher(Silent):
        def __init__(self) -> None:
            self.events: list[int | str] = []

        def loading(self) -> None:
            self.events.append("loading")

        def generating(self, tokens: int) -> None:
            self.events.append(tokens)

    model, watcher = open_model("default", EngineOptions(threads=1)), Watcher()
    watch(model, watcher)
    (made,) = model.generate([Request("t", 0, Prompt(text="def f"), Decoding(max_tokens=400), 0)])
    first, loaded, *counts = watcher.events
    assert (first, loaded) == ("loading", 0)
    assert counts
    assert counts == sorted(counts, key=int)
    assert 0 < int(counts[-1]) <= made.tokens_generated

"""Reference solutions run first: they give expected outputs and tell what cannot be scored."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.data import plain
from assay.judging import references
from assay.pipeline.judging import long_first, open_verdict_cache
from assay.runs import VerdictCache
from assay.sandbox import Capabilities, Sandbox, open_sandbox
from assay.sandbox.judges.dispatch import JudgeProcess
from assay.sandbox.kinds.process import open_judges
from assay.types import Benchmark, Cases, Job, Problem, Program, Tests, TimeRule, Verdict
from assay.work import machine

MATCHER = "def matcher():\n    return lambda arguments, expected, got: got == expected\n"


class Watching:
    """An observer that counts what was prepared."""

    def __init__(self) -> None:
        self.prepared: list[tuple[str, int, int]] = []
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def begin(self, *_: object) -> None: ...
    def completed(self, *_: object) -> None: ...
    def loading(self) -> None: ...
    def generating(self, tokens: int) -> None: ...
    def judged(self, *_: object) -> None: ...
    def preparing(self, what: str, done: int, total: int) -> None:
        self.prepared.append((what, done, total))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    opened = open_sandbox("process", 2)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(machine, "is_busy", lambda *_: False)  # whatever else runs here
    return tmp_path


def with_cases(
    task_id: str, reference: str, expected: dict[str, list[Any]] | None = None
) -> Problem:
    inputs = {"base": [plain.encode([1])], "plus": [plain.encode([n]) for n in range(5)]}
    cases = Cases(inputs, expected or {}, digest=f"inputs {expected}")
    return Problem(task_id, "", reference, Tests("f", MATCHER, "", "separated", cases))


def with_code(task_id: str, reference: str, code: str = "assert f(1) == 2") -> Problem:
    return Problem(task_id, "", reference, Tests("f", code, "", "separated"))


def benchmark(*problems: Problem) -> Benchmark:
    return Benchmark("b", "1", "", problems)


def test_cases_expect_what_the_reference_returns(sandbox: Sandbox) -> None:
    given = benchmark(with_cases("a", "def f(x): return (x, x * x)"), with_code("b", "f = int"))
    checked = references.check(given, sandbox, Watching())
    cases = checked.benchmark.problems[0].tests.cases
    assert cases is not None
    assert [plain.decode(value) for value in cases.expected["plus"]] == [
        (n, n * n) for n in range(5)
    ]
    why = "wrong-answer: AssertionError: f(1) gave 1 (assert f(1) == 2)"
    assert checked.unscorable == {"b": why}
    programs = ["def f(x): return (x, x ** 2)", "def f(x): return (x, x + x)"]
    tests = checked.benchmark.problems[0].tests
    jobs = [Job("a", i, Program(code, "x"), tests) for i, code in enumerate(programs)]
    statuses = {verdict.sample: verdict.status for verdict in sandbox.judge(jobs)}
    assert statuses == {0: "pass", 1: "fail"}


def test_a_reference_is_judged_by_the_expected_values_that_a_benchmark_gives(
    sandbox: Sandbox,
) -> None:
    given = {"base": [plain.encode(2)], "plus": [plain.encode(2 * n) for n in range(5)]}
    problems = [
        with_cases(task_id, reference, given)
        for task_id, reference in (("right", "def f(x): return x + x"), ("wrong", "f = int"))
    ]
    for _ in range(2):  # when it is run, and when that is remembered
        checked = references.check(benchmark(*problems), sandbox, Watching())
        assert checked.benchmark.problems == tuple(problems)
        assert list(checked.unscorable) == ["wrong"]
        assert checked.unscorable["wrong"].startswith("wrong-answer: expected 2, got 1")
    jobs = [Job("right", 0, Program("def f(x): return 2 * x", ""), problems[0].tests)]
    assert [verdict.status for verdict in sandbox.judge(jobs)] == ["pass"]


def test_once_on_a_machine(sandbox: Sandbox) -> None:
    given = benchmark(with_cases("a", "def f(x): return x"), with_code("b", "f = int"))
    first, second, again = Watching(), Watching(), Watching()
    found = references.check(given, sandbox, first)
    assert {total for _, _, total in first.prepared} == {1, 2}
    known = references.check(given, sandbox, second)
    assert (known.benchmark, known.seconds) == (found.benchmark, found.seconds)
    assert known.unscorable["b"].startswith(f"{found.unscorable['b']} (judged just now;")
    assert second.prepared == []
    assert references.check(given, sandbox, again, again=True).unscorable == found.unscorable
    assert again.prepared == first.prepared


def test_what_is_known_starts_no_judge_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness would wait for them before it asks the model for the first completion."""
    started: list[object] = []
    start = JudgeProcess.__init__

    def count(self: JudgeProcess, *arguments: Any) -> None:
        started.append(self)
        start(self, *arguments)

    monkeypatch.setattr(JudgeProcess, "__init__", count)
    problems = [with_cases(f"t/{n}", f"def f(x): return x + {n}") for n in range(20)]
    given = benchmark(*problems)
    judges = open_judges(2, "auto", 2)
    with contextlib.closing(judges):
        references.check(given, judges, Watching())
        assert started
        started.clear()
        known = references.check(given, judges, Watching())
        assert (len(known.seconds), known.unscorable, started) == (20, {}, [])


@pytest.mark.slow
def test_what_takes_long_to_judge_comes_first(sandbox: Sandbox) -> None:
    sleeps = "import time\ntime.sleep({})\ndef f(x): return 2"
    given = benchmark(
        with_code("quick", sleeps.format(0)), with_code("short", sleeps.format(0.1)),
        with_code("long", sleeps.format(2.2)), with_code("longest", sleeps.format(2.6)),
    )  # fmt: skip
    for _ in range(2):  # when it is run, and when that is remembered
        seconds = references.check(given, sandbox, Watching()).seconds
        assert 2 < seconds["long"] < seconds["longest"]
        keys = [(p.task_id, sample) for p in given.problems for sample in (0, 1)]
        order = [task_id for task_id, _ in long_first(keys, seconds)]
        assert order == [t for t in ("longest", "long", "quick", "short") for _ in (0, 1)]


def test_what_is_judged_alone_comes_last() -> None:
    keys = [(name, 0) for name in ("timed", "long", "quick")]
    seconds = {"timed": 9.0, "long": 3.0}
    order = [name for name, _ in long_first(keys, seconds, frozenset({"timed"}))]
    assert order == ["long", "quick", "timed"]


def test_another_reference_or_limit_is_run_anew(sandbox: Sandbox) -> None:
    given = benchmark(with_cases("a", "def f(x): return x"))
    references.check(given, sandbox, Watching())
    for changed in (
        benchmark(with_cases("a", "def f(x): return -x")),
        dataclasses.replace(given, limits=dataclasses.replace(given.limits, cpu_s=9.0)),
    ):
        watching = Watching()
        references.check(changed, sandbox, watching)
        assert watching.prepared


@pytest.mark.slow
def test_a_time_rule_limits_tasks_by_the_time_of_their_references(sandbox: Sandbox) -> None:
    burns = "import time\nwhile time.process_time() < {}: pass\ndef f(x): return 2"
    given = dataclasses.replace(
        benchmark(
            with_code("quick", "def f(x): return 2"), with_code("slow", burns.format(0.3)),
            with_code("slowest", burns.format(1.2)), with_code("wrong", "f = int"),
        ),
        time_rule=TimeRule(least_s=2.0, factor=10.0),
    )  # fmt: skip
    for _ in range(2):  # when it is run, and when that is remembered
        found = references.check(given, sandbox, Watching()).benchmark
        assert found.limits_of("quick").cpu_s == 2.0
        assert 3.0 <= found.limits_of("slow").cpu_s < 10.0
        assert found.limits_of("slowest").cpu_s == 10.0  # never above the fixed limit
        assert "wrong" not in found.cpu_s  # a reference that fails has no time: the fixed limit
        assert found.limits_of("wrong") == found.limits
    fixed = dataclasses.replace(given, time_rule=None)
    assert references.check(fixed, sandbox, Watching()).benchmark.cpu_s == {}


def test_damaged_files_are_run_anew(sandbox: Sandbox, own_cache: Path) -> None:
    given = benchmark(with_cases("a", "def f(x): return x"))
    found = references.check(given, sandbox, Watching())
    for path in (own_cache / "references").rglob("*.json"):
        path.write_text(path.read_text().replace("1", "2"))
    watching = Watching()
    assert _expected(references.check(given, sandbox, watching)) == _expected(found)
    assert len(watching.prepared) == 2


def test_a_reference_that_fails_on_an_input_cannot_be_scored(sandbox: Sandbox) -> None:
    given = benchmark(with_cases("a", "def f(x): return 1 / (x - 3)"))
    checked = references.check(given, sandbox, Watching())
    assert checked.unscorable["a"].startswith("exception: ZeroDivisionError")


def _expected(checked: references.CheckedBenchmark) -> dict[str, list[object]]:
    cases = checked.benchmark.problems[0].tests.cases
    assert cases is not None
    return cases.expected


class OfImage:
    """A sandbox whose programs see an image."""

    def __init__(self, sandbox: Sandbox, image: str) -> None:
        self._sandbox, self._image = sandbox, image
        self.judge, self.outputs, self.close = sandbox.judge, sandbox.outputs, sandbox.close
        self.run_stage = sandbox.run_stage

    def capabilities(self) -> Capabilities:
        return dataclasses.replace(self._sandbox.capabilities(), image=self._image)


def test_what_is_kept_holds_for_one_image(sandbox: Sandbox, own_cache: Path) -> None:
    given = benchmark(with_cases("a", "def f(x): return x + 1"))
    prepared = []
    for image in ("", "sha256:1", "sha256:2", "sha256:1", ""):
        watching = Watching()
        references.check(given, OfImage(sandbox, image), watching)
        prepared.append(len(watching.prepared))
    assert prepared == [2, 2, 2, 0, 0]
    job = Job("a", 0, Program("def f(x): return x", ""), given.problems[0].tests)
    found = sandbox.capabilities()
    assert found.image == ""
    keys = {
        image: open_verdict_cache(dataclasses.replace(found, image=image), "packages").key(job)
        for image in ("", "sha256:1", "sha256:2")
    }
    assert len(set(keys.values())) == 3
    plain_cache = VerdictCache(own_cache, found.kind, found.tier, found.python, "packages")
    assert keys[""] == plain_cache.key(job)  # an entry without an image stays valid


class Crowded:
    """A sandbox whose programs fail unless they are judged alone, as those that measure time do."""

    def __init__(self, sandbox: Sandbox, task_ids: set[str]) -> None:
        self._sandbox, self._task_ids = sandbox, task_ids
        self.capabilities, self.close = sandbox.capabilities, sandbox.close
        self.run_stage = sandbox.run_stage
        self.batches: list[int] = []

    def judge(self, jobs: Iterable[Job]) -> Iterator[Verdict]:
        jobs = list(jobs)
        self.batches.append(len(jobs))
        for verdict in self._sandbox.judge(jobs):
            crowded = len(jobs) > 1 and verdict.task_id in self._task_ids
            yield dataclasses.replace(verdict, status="fail", reason="slow") if crowded else verdict

    def outputs(self, jobs: Iterable[Job]) -> Iterator[tuple[Verdict, Cases | None]]:
        jobs = list(jobs)
        for verdict, cases in self._sandbox.outputs(jobs):
            crowded = len(jobs) > 1 and verdict.task_id in self._task_ids
            yield verdict, None if crowded else cases


def test_a_failed_reference_is_judged_again_alone_before_it_counts(sandbox: Sandbox) -> None:
    right, wrong = "def f(x): return 2", "f = int"
    given = benchmark(with_code("a", right), with_code("b", right + " "), with_code("c", wrong))
    crowded = Crowded(sandbox, {"b"})
    assert list(references.check(given, crowded, Watching()).unscorable) == ["c"]
    assert crowded.batches == [3, 1, 1]
    known = Watching()  # what passed alone is cached, too
    assert list(references.check(given, crowded, known).unscorable) == ["c"]
    assert known.prepared == []


def test_a_reference_whose_outputs_fail_is_run_again_alone(sandbox: Sandbox) -> None:
    given = benchmark(*(with_cases(name, f"def f(x): return {name!r}") for name in "abc"))
    checked = references.check(given, Crowded(sandbox, {"b"}), Watching())
    assert checked.unscorable == {}
    assert all(p.tests.cases and p.tests.cases.expected for p in checked.benchmark.problems)


def test_a_failure_on_a_busy_machine_is_not_cached(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = benchmark(with_code("a", "def f(x): return 2"), with_code("b", "f = int"))
    monkeypatch.setattr(machine, "is_busy", lambda *_: True)
    for _ in range(2):
        watching = Watching()
        assert list(references.check(given, sandbox, watching).unscorable) == ["b"]
        assert watching.prepared[-1][2] in (1, 2)
    assert watching.prepared == [("checking the reference solutions, once per machine:", 1, 1)]
    monkeypatch.setattr(machine, "is_busy", lambda *_: False)
    references.check(given, sandbox, Watching())
    known = Watching()
    references.check(given, sandbox, known)
    assert known.prepared == []


def test_a_cached_failure_shows_its_age_and_expires(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = benchmark(with_code("b", "f = int"))
    first = references.check(given, sandbox, Watching()).unscorable["b"]
    assert "judged" not in first
    now = time.time()
    for later_s, age in ((0, "just now"), (7200, "2 hours ago"), (90_000, "1 day ago")):
        monkeypatch.setattr(time, "time", lambda later_s=later_s: now + later_s + 1)
        watching = Watching()
        found = references.check(given, sandbox, watching).unscorable["b"]
        assert found == f"{first} (judged {age}; --check-references judges it again)"
        assert watching.notes == [
            f"unscorable by an earlier check: b ({age}); --check-references repeats it"
        ]
    watching = Watching()
    monkeypatch.setattr(time, "time", lambda: now + 8 * 86400)
    assert references.check(given, sandbox, watching).unscorable["b"] == first
    assert watching.prepared


def test_a_failure_without_a_date_is_judged_again(sandbox: Sandbox) -> None:
    """Earlier versions kept failures that the load of the machine had caused."""
    given = benchmark(with_code("b", "def f(x): return 2"))
    checker = references._References(given, sandbox, Watching(), False)
    old = {"failure": "wrong-answer: too slow", "wall_s": 1.0, "cpu_s": 1.0}
    checker._kept.put(checker._key(references.VERDICT, given.problems[0]), old)
    assert references.check(given, sandbox, Watching()).unscorable == {}


SLEEPS = "import time\ntime.sleep({})\ndef f(x): return {}"


def test_a_slow_reference_does_not_hold_others_up(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(references, "SLOW_S", 0.5)
    given = benchmark(
        with_code("quick", "def f(x): return 2"), with_code("slow", SLEEPS.format(3, 2)),
        with_code("slow and wrong", SLEEPS.format(1, 3)),
    )  # fmt: skip
    checked = references.check(
        given, sandbox, Watching(), open_late=lambda: open_sandbox("process", 1)
    )
    with contextlib.closing(checked):
        assert not checked.is_pending("quick")
        assert checked.is_pending("slow")
        assert checked.is_pending("slow and wrong")
        assert checked.unscorable == {}
        checked.wait()
        assert list(checked.unscorable) == ["slow and wrong"]
        assert not checked.is_pending("slow")
    known = Watching()
    references.check(given, sandbox, known, open_late=lambda: open_sandbox("process", 1))
    assert known.prepared == []


def test_what_depends_on_the_time_of_a_reference_waits_for_it(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(references, "SLOW_S", 0.1)
    given = dataclasses.replace(
        benchmark(with_code("slow", SLEEPS.format(0.5, 2))), time_rule=TimeRule(1.0, 10.0)
    )
    late = references.check(
        given, sandbox, Watching(), open_late=lambda: open_sandbox("process", 1)
    ).late
    assert late is None


def test_late_references_end_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "SLOW_S", 0.2)
    given = benchmark(with_code("slow", SLEEPS.format(60, 2)))
    with contextlib.closing(open_sandbox("process", 1)) as own:
        checked = references.check(
            given, own, Watching(), open_late=lambda: open_sandbox("process", 1)
        )
        started = time.monotonic()
        checked.close()
        assert time.monotonic() - started < 30


def test_samples_of_other_tasks_are_judged_before_a_slow_reference_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(references, "SLOW_S", 0.5)
    prompt = 'def f(x):\n    """Return 2."""\n'
    problems = [
        {"task_id": name, "prompt": prompt, "entry_point": "f", "tests": "assert f(1) == 2",
         "reference": reference}
        for name, reference in (("slow", SLEEPS.format(4, 2)), ("quick", "def f(x): return 2"))
    ]  # fmt: skip
    mine = tmp_path / "mine.jsonl"
    mine.write_text("".join(f"{json.dumps(one)}\n" for one in problems))
    recorded = tmp_path / "samples.jsonl"
    solution = "def f(x):\n    return 2\n"
    recorded.write_text(
        "".join(f"{json.dumps({'task_id': n, 'solution': solution})}\n" for n in ("slow", "quick"))
    )

    class Order(Watching):
        def __init__(self) -> None:
            super().__init__()
            self.order: list[str] = []

        def judged(self, *found: Any) -> None:
            self.order.append(found[0].task_id)

    reporter = Order()
    result = assay.evaluate(
        mine, model=f"replay:{recorded}", results_dir=tmp_path / "results", reporter=reporter,
        workers=1, use_cache=False,
    )  # fmt: skip
    assert reporter.order == ["quick", "slow"]
    assert result.pass_at[1].value == 1.0

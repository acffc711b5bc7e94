"""Reference solutions run first: they give expected outputs and tell what cannot be scored."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay import plain
from assay.pipeline import references
from assay.pipeline.judging import _long_first, _verdict_cache
from assay.runs import VerdictCache
from assay.sandbox import Capabilities, Sandbox, open_sandbox
from assay.sandbox.judges.process import JudgeProcess
from assay.sandbox.kinds.process import open_judges
from assay.types import Benchmark, Cases, Job, Problem, Program, Tests, TimeRule

MATCHER = "def matcher():\n    return lambda arguments, expected, got: got == expected\n"


class Watching:
    """An observer that counts what was prepared."""

    def __init__(self) -> None:
        self.prepared: list[tuple[str, int, int]] = []

    def note(self, text: str) -> None: ...
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
    assert checked.unscorable == {"b": "wrong-answer: AssertionError: f(1) gave 1"}
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
        assert checked.unscorable == {"wrong": "wrong-answer: expected 2, got 1"}
    jobs = [Job("right", 0, Program("def f(x): return 2 * x", ""), problems[0].tests)]
    assert [verdict.status for verdict in sandbox.judge(jobs)] == ["pass"]


def test_once_on_a_machine(sandbox: Sandbox) -> None:
    given = benchmark(with_cases("a", "def f(x): return x"), with_code("b", "f = int"))
    first, second, again = Watching(), Watching(), Watching()
    found = references.check(given, sandbox, first)
    assert {total for _, _, total in first.prepared} == {1, 2}
    assert references.check(given, sandbox, second) == found
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
        order = [task_id for task_id, _ in _long_first(keys, seconds)]
        assert order == [t for t in ("longest", "long", "quick", "short") for _ in (0, 1)]


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
        image: _verdict_cache(dataclasses.replace(found, image=image), "packages").key(job)
        for image in ("", "sha256:1", "sha256:2")
    }
    assert len(set(keys.values())) == 3
    plain_cache = VerdictCache(own_cache, found.kind, found.tier, found.python, "packages")
    assert keys[""] == plain_cache.key(job)  # what was kept before there were images

"""The stream itself, with models and observers of the test's own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from assay import models
from assay.cli.eval import show_all
from assay.errors import ModelError, UsageError
from assay.extract.workers import ExtractionLimits, Extractor
from assay.models import EngineFacts
from assay.pipeline import (
    EvalConfig,
    Sampling,
    ScoreConfig,
    evaluate,
    evaluate_all,
    sample_seed,
    score,
)  # fmt: skip
from assay.types import Benchmark, Completion, Decoding, ModelIdentity, Request, Verdict
from tests.conftest import references, write_completions


class Watcher:
    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.missing = self.cached = 0

    def note(self, text: str) -> None:
        pass

    def preparing(self, what: str, done: int, total: int) -> None: ...
    def loading(self) -> None: ...
    def generating(self, tokens: int) -> None: ...
    def begin(self, total: int, verdicts: list[Verdict], missing: int) -> None:
        self.missing = missing
        self.events.append(("begin", f"{len(verdicts)}/{total}"))

    def completed(self, completion: Completion) -> None:
        self.events.append(("completed", completion.task_id))

    def judged(self, verdict: Verdict, cached: bool) -> None:
        self.cached += cached
        self.events.append(("judged", verdict.task_id))


class ScriptedModel:
    """Answers with the reference, slowly, and breaks down where told to."""

    identity = ModelIdentity("scripted", "test", "w", "chat")
    thinks = False

    def __init__(self, benchmark: Benchmark, delay: float = 0.0, break_after: int = 10**9) -> None:
        self._answers = {p.task_id: p.reference for p in benchmark.problems}
        self._delay = delay
        self._break_after = break_after
        self.asked: list[Request] = []
        self.threads = set[int]()

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for number, request in enumerate(requests):
            if number == self._break_after:
                raise ModelError("the engine is gone")
            self.asked.append(request)
            self.threads.add(threading.get_ident())
            time.sleep(self._delay)
            text = self._answers[request.task_id]
            yield Completion(request.task_id, request.sample, text, "stop", 1, 1, 1.0, 0, False)

    def describe(self) -> EngineFacts:
        return EngineFacts()

    def close(self) -> None:
        pass


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


def install(monkeypatch: pytest.MonkeyPatch, model: ScriptedModel) -> None:
    monkeypatch.setattr(models, "open_model", lambda *_: model)


def test_judging_goes_on_while_the_model_generates(
    use: pytest.MonkeyPatch, mini: Benchmark, tmp_path: Path
) -> None:
    install(use, ScriptedModel(mini, delay=0.1))
    watcher = Watcher()
    evaluate(EvalConfig("mini", tmp_path, workers=1), watcher)
    kinds = [kind for kind, _ in watcher.events]
    last_completed = len(kinds) - 1 - kinds[::-1].index("completed")
    assert kinds[:last_completed].count("judged") >= 10


def test_a_model_that_breaks_down_loses_nothing_and_is_continued(
    use: pytest.MonkeyPatch, mini: Benchmark, tmp_path: Path
) -> None:
    install(use, ScriptedModel(mini, break_after=7))
    with pytest.raises(ModelError, match="the engine is gone"):
        evaluate(EvalConfig("mini", tmp_path, workers=1), Watcher())
    second = ScriptedModel(mini)
    install(use, second)
    watcher = Watcher()
    result = evaluate(EvalConfig("mini", tmp_path, workers=1), watcher)
    assert watcher.events[0] == ("begin", "7/20")
    assert watcher.missing == 13
    assert len(second.asked) == 13
    assert result.pass_at[1].value == 1.0


@pytest.mark.slow
def test_all_strategies_in_one_table(
    use: pytest.MonkeyPatch, mini: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(use, ScriptedModel(mini))
    evaluations = evaluate_all(
        EvalConfig("mini", tmp_path, workers=1, prompt_strategy="all"), Watcher()
    )
    show_all(evaluations, as_json=False)
    title, *rows = capsys.readouterr().out.splitlines()
    assert title == "mini · scripted · n=1"
    names = [row.split()[0] for row in rows]
    assert names[:5] == ["strategy", "standard", "cgo", "few-shot", "scot"]
    assert names[5:] == ["no-gpu:", "shared-tests:"]  # what the marks mean
    assert all("+0.0 points" in row for row in rows[2:5])
    show_all(evaluations, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert len({result["protocol"]["hash"] for result in shown["results"]}) == 4
    assert [comparison["gained"] for comparison in shown["comparisons"]] == [[]] * 3


def test_a_slow_judge_holds_the_model_back(
    use: pytest.MonkeyPatch, mini: Benchmark, tmp_path: Path
) -> None:
    model = ScriptedModel(mini)
    install(use, model)
    use.setattr("assay.pipeline.run.WAITING", 2)
    lead: list[int] = []

    class SlowJudge(Watcher):
        def judged(self, verdict: Verdict, cached: bool) -> None:
            super().judged(verdict, cached)
            time.sleep(0.05)
            lead.append(len(model.asked) - len(lead))

    evaluate(EvalConfig("mini", tmp_path, workers=1), SlowJudge())
    assert max(lead) <= 2 + 2 + 2  # queue, worker, results on their way


def test_a_slow_program_does_not_hold_the_model_back(
    use: pytest.MonkeyPatch, mini: Benchmark, tmp_path: Path
) -> None:
    model = ScriptedModel(mini)
    install(use, model)

    class SlowStart(Watcher):
        def judged(self, verdict: Verdict, cached: bool) -> None:
            super().judged(verdict, cached)
            deadline = time.monotonic() + 60
            while len(model.asked) < 400 and time.monotonic() < deadline:
                time.sleep(0.01)
            assert len(model.asked) == 400

    evaluate(EvalConfig("mini", tmp_path, sampling=Sampling(20, 1.0), workers=1), SlowStart())


@pytest.mark.parametrize(("no_cache", "cached"), [(True, 0), (False, 20)])
def test_cached_verdicts_are_reported_as_such(
    use: pytest.MonkeyPatch, mini: Benchmark, tmp_path: Path, no_cache: bool, cached: int
) -> None:
    use.setenv("ASSAY_CACHE_DIR", str(tmp_path / "cache"))
    install(use, ScriptedModel(mini))
    watcher = Watcher()
    config = EvalConfig("mini", tmp_path, workers=1, sampling=Sampling(2, 1.0), no_cache=no_cache)
    evaluate(config, watcher)
    assert watcher.cached == cached


def test_the_model_runs_in_one_thread_of_its_own(
    use: pytest.MonkeyPatch, mini: Benchmark, tmp_path: Path
) -> None:
    model = ScriptedModel(mini)
    install(use, model)
    evaluate(EvalConfig("mini", tmp_path, workers=1), Watcher())
    assert len(model.threads) == 1
    assert threading.get_ident() not in model.threads


def test_where_a_run_was_made_is_kept(
    use: pytest.MonkeyPatch, mini: Benchmark, tmp_path: Path
) -> None:
    install(use, ScriptedModel(mini, break_after=7))
    with pytest.raises(ModelError):
        evaluate(EvalConfig("mini", tmp_path, workers=1), Watcher())
    use.setattr("assay.pipeline.judging.__version__", "99")
    install(use, ScriptedModel(mini))
    result = evaluate(EvalConfig("mini", tmp_path, workers=1), Watcher())
    assert result.environment.assay != "99"
    assert [e.assay for e in result.continued_in] == ["99"]
    use.setattr("assay.pipeline.judging.__version__", "100")  # nothing is left to do there
    assert evaluate(EvalConfig("mini", tmp_path, workers=1), Watcher()) == result


def test_seeds_depend_on_seed_task_and_sample_alone() -> None:
    seeds = {sample_seed(s, t, i) for s in (0, 1) for t in ("a", "b") for i in range(50)}
    assert len(seeds) == 200
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert sample_seed(0, "a", 0) == sample_seed(0, "a", 0)


@pytest.mark.parametrize(
    ("settings", "decoding"),
    [
        ({}, Decoding(512, 0.0, 1)),
        ({"top_k": 7, "seed": 3}, Decoding(512, 0.0, 1)),  # greedy has one spelling
        ({"temperature": 0.8}, Decoding(512, 0.8, 40)),
        ({"temperature": 0.8, "top_k": 0, "seed": 3}, Decoding(512, 0.8, 0, seed=3)),
    ],
)
def test_decoding(settings: dict[str, float], decoding: Decoding) -> None:
    assert Sampling(**settings).resolve() == decoding  # type: ignore[arg-type]


def test_a_model_that_thinks_may_take_longer() -> None:
    assert Sampling().resolve(thinks=True) == Decoding(16384, 0.0, 1)
    assert Sampling(max_tokens=99).resolve(thinks=True) == Decoding(99, 0.0, 1)


def test_a_benchmark_has_its_own_limit_unless_another_is_given() -> None:
    assert Sampling().resolve(usual=1280) == Decoding(1280, 0.0, 1)
    assert Sampling(max_tokens=99).resolve(usual=1280) == Decoding(99, 0.0, 1)
    assert Sampling().resolve(thinks=True, usual=1280) == Decoding(16384, 0.0, 1)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_samples": 0},
        {"max_tokens": 0},
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"temperature": 1.0, "top_k": -1},
        {"top_k": -1},
    ],
)
def test_settings_without_meaning_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="--"):
        Sampling(**settings).resolve()  # type: ignore[arg-type]


def test_less_than_no_workers_are_refused() -> None:
    with pytest.raises(UsageError, match="--workers"):
        evaluate(EvalConfig("mini", Path(), workers=-1), Watcher())


def test_a_text_that_breaks_extraction_fails_and_the_rest_is_judged(
    monkeypatch: pytest.MonkeyPatch, mini: Benchmark, tmp_path: Path
) -> None:
    """Without a limit, this text takes minutes in which nothing else is judged."""
    name = mini.problems[0].tests.entry_point
    endless = f"def {name}(x):\n" + "".join(f" a{i}=lambda:1\n" for i in range(60_000))
    samples = [("mini/0", endless), *references(mini)[1:]]
    path = write_completions(tmp_path / "s.jsonl", samples)
    monkeypatch.setattr(
        "assay.judging.stage.Extractor",
        lambda n, **more: Extractor(n, ExtractionLimits(cpu_s=0.1), **more),
    )
    config = ScoreConfig("mini", tmp_path / "results", samples_file=str(path), workers=1)
    result = score(config, Watcher()).results
    assert result.reasons == {"passed": 19, "extraction": 1}
    assert (result.completed, result.samples) == (20, 20)

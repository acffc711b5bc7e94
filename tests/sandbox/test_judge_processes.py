"""A run through judge processes: the same verdicts, lines and errors as in one process."""

from __future__ import annotations

import gzip
import json
import os
import signal
from pathlib import Path

import pytest

from assay.pipeline import ScoreConfig, score
from assay.progress import Silent
from assay.runs import RunReader
from assay.sandbox.judges import processes
from assay.types import Benchmark, SampleKey, Verdict
from tests.conftest import references, write_completions
from tests.judging.test_alternatives import FUNCTION, RIGHT, WRONG
from tests.pipeline.test_pipeline import Watcher

FILE = "completions/humaneval_poe_ollama.jsonl.gz"
MODELS = ("codegemma:7b (ollama)", "qwen2.5-coder:7b (ollama)")
# What a repeated execution gives again; time and memory differ.
LASTING = (
    "status", "reason", "detail", "failing_test", "integrity", "rule", "groups", "call", "expected",
    "actual", "difference", "input",
)  # fmt: skip


@pytest.fixture
def judges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge in two processes, however few cores there are and however short the run is."""
    monkeypatch.setattr("assay.sandbox.kinds.process.count_judges", lambda *_: 2)
    monkeypatch.setattr(processes, "FEW", 0)


def lasting(verdicts: dict[SampleKey, Verdict]) -> dict[SampleKey, list[object]]:
    return {key: [getattr(v, name) for name in LASTING] for key, v in verdicts.items()}


def run(
    folder: Path, samples: list[tuple[str, str]], benchmark: str, **options: object
) -> RunReader:
    path = write_completions(folder / "samples.jsonl", samples)
    config = ScoreConfig(
        benchmark, folder / "results", samples_file=str(path), workers=4, tests_seed="fixed",
        **{"no_cache": True, **options},  # type: ignore[arg-type]
    )  # fmt: skip
    return RunReader(score(config, Silent()).folder)


def recorded(file: Path) -> list[tuple[str, str]]:
    with gzip.open(file, "rt") as lines:
        records = [record for record in map(json.loads, lines) if record["model"] in MODELS]
    return [(record["task_id"], record["raw"]) for record in records]


@pytest.mark.slow
def test_recorded_completions_get_the_same_verdicts_in_any_order(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = recorded(shared_data / FILE)
    assert len(samples) == 328
    texts = dict(zip(numbered(samples), samples, strict=True))
    found = {}
    for judges in (0, 2):
        monkeypatch.setattr("assay.sandbox.kinds.process.count_judges", lambda *_, n=judges: n)
        folder = tmp_path / str(judges)
        folder.mkdir()
        if judges:
            samples = samples[::-1]
        verdicts = lasting(run(folder, samples, "humaneval").verdicts)
        # A task's samples are numbered in the order of the file.
        order = dict(zip(numbered(samples), samples, strict=True))
        found[judges] = {order[key]: verdict for key, verdict in verdicts.items()}
        assert len(verdicts) == len(texts) == 328
    assert found[0] == found[2]


def numbered(samples: list[tuple[str, str]]) -> list[SampleKey]:
    counts: dict[str, int] = {}
    keys = []
    for task_id, _ in samples:
        counts[task_id] = counts.get(task_id, -1) + 1
        keys.append((task_id, counts[task_id]))
    return keys


@pytest.mark.usefixtures("judges")
def test_programs_and_verdicts_are_recorded(mini: Benchmark, tmp_path: Path) -> None:
    texts = [(task_id, f"```python\n{code}```") for task_id, code in references(mini)]
    samples = [*texts, *((task_id, "I cannot.") for task_id, _ in texts)]
    reader = run(tmp_path, samples, "mini")
    assert [v.reason for v in reader.verdicts.values()].count("passed") == 20
    assert [v.reason for v in reader.verdicts.values()].count("no-code") == 20
    programs = list(reader.read_programs())
    assert {(p.task_id, p.sample, p.rule) for p in programs} == {
        (task_id, 0, "fenced") for task_id, _ in texts
    }


@pytest.mark.slow
@pytest.mark.usefixtures("judges")
def test_many_programs_with_two_forms_do_not_fill_the_processes(
    mini: Benchmark, tmp_path: Path
) -> None:
    """Each waits for its second form, which is judged last, and others are judged meanwhile."""
    task = "mini/0"
    both = [(task, FUNCTION + (RIGHT if n % 2 else WRONG)) for n in range(60)]
    task_id = next(p.task_id for p in mini.problems if "celsius" in p.tests.entry_point)
    samples = [(task_id, text) for _, text in both]
    reader = run(tmp_path, samples, "mini", partial=True)
    assert [reader.verdicts[task_id, n].status for n in range(60)] == ["fail", "pass"] * 30
    assert len(list(reader.read_programs())) == 120


@pytest.mark.slow
@pytest.mark.usefixtures("judges")
def test_identical_programs_are_looked_up(
    mini: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "cache"))
    samples = references(mini) * 3
    path = write_completions(tmp_path / "first.jsonl", samples)
    counted = Watcher()
    config = ScoreConfig("mini", tmp_path / "results", samples_file=str(path), workers=4)
    first = RunReader(score(config, counted).folder)
    assert counted.cached == 40  # of 60, each program is executed once in all processes together
    path = write_completions(tmp_path / "again.jsonl", samples)
    watcher = Watcher()
    config = ScoreConfig("mini", tmp_path / "other", samples_file=str(path), workers=4)
    second = RunReader(score(config, watcher).folder)
    assert watcher.cached == 60
    assert lasting(first.verdicts) == lasting(second.verdicts)


@pytest.mark.slow
@pytest.mark.usefixtures("judges")
def test_a_judge_that_is_killed_in_a_run_loses_no_sample(mini: Benchmark, tmp_path: Path) -> None:
    class Killer(Watcher):
        """Kill a judge process now and then."""

        def judged(self, verdict: Verdict, cached: bool) -> None:
            super().judged(verdict, cached)
            if sum(kind == "judged" for kind, _ in self.events) in (20, 60):
                (pid, *_) = judge_processes()
                os.kill(pid, signal.SIGKILL)

    wrong = [(t, "def f(): pass\n" if n % 3 else c) for n, (t, c) in enumerate(references(mini))]
    path = write_completions(tmp_path / "samples.jsonl", wrong * 8)
    killer = Killer()
    config = ScoreConfig(
        "mini", tmp_path / "results", samples_file=str(path), workers=4, no_cache=True
    )
    result = score(config, killer).results
    assert (result.samples, result.invalid) == (160, 0)
    assert result.reasons["passed"] == 7 * 8


def judge_processes() -> list[int]:
    """Return the judge processes of this process."""
    own = Path(f"/proc/{os.getpid()}/task")
    children = [pid for task in own.iterdir() for pid in (task / "children").read_text().split()]
    return [int(p) for p in children if "judges.main" in Path(f"/proc/{p}/cmdline").read_text()]

"""``assay eval --until decided`` with a server that samples: success, kills, other margins."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from assay.types import Benchmark
from tests.conftest import Cli
from tests.e2e.test_resume import start, wait_for_lines
from tests.models.faulty_server import FaultyServer, serving

pytest.importorskip("httpx", reason="the openai engine needs httpx (the openai extra)")

ROUNDS = 6
SAMPLED = ("--temperature", "0.8", "--n-samples", str(ROUNDS))


class Models:
    """Servers of models that solve a problem of mini with a probability."""

    def __init__(self, mini: Benchmark, opened: ExitStack) -> None:
        self._problems, self._opened = mini.problems, opened

    def serve(self, name: str, rate: float) -> FaultyServer:
        draw = random.Random(name)

        def answer(prompt: str) -> str:
            (found,) = (p for p in self._problems if f"def {p.tests.entry_point}(" in prompt)
            code = found.reference if draw.random() < rate else "def unknown(): pass"
            return f"```python\n{code}\n```"

        served = self._opened.enter_context(serving(text=answer))
        served.models = [{"id": name, "created": 1}]
        return served


@pytest.fixture
def models(mini: Benchmark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Models]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with ExitStack() as opened:
        yield Models(mini, opened)


def asked(server: FaultyServer, *more: str) -> tuple[str, ...]:
    return ("mini", "--model", "openai:", "--base-url", server.url, *SAMPLED, *more)


def evaluate(assay: Cli, server: FaultyServer, *more: str, code: int = 0) -> Any:
    done = assay("eval", *asked(server, *more), "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if done.stdout else done.stderr


def until(baseline: Any, *more: str) -> tuple[str, ...]:
    return ("--until", "decided", "--against", baseline["run"], *more)


def test_a_large_difference_ends_the_evaluation_early(
    models: Models, assay: Cli, tmp_path: Path
) -> None:
    baseline = evaluate(assay, models.serve("weak", 0.05))
    server = models.serve("strong", 0.95)
    done = assay("eval", *asked(server, *until(baseline)))
    assert f"round 1 of {ROUNDS}: +" in done.stderr
    (path,) = (p for p in (tmp_path / "results").glob("*.json") if p.stem != baseline["run"])
    found = json.loads(path.read_text())
    rounds = len(found["sequential"]["looks"])
    assert found["sequential"]["decision"] == "better"
    assert rounds < ROUNDS
    assert sum(server.counts.values()) == found["results"]["samples"] == 20 * rounds
    assert not found["publishable"]
    # The command is at its end: nothing is asked again, and the result stays the same.
    again = evaluate(assay, server, *until(baseline))
    assert (again["run"], again["sequential"]) == (found["run"], found["sequential"])
    assert sum(server.counts.values()) == 20 * rounds
    # A plain evaluation adds the samples that the comparison did not need, and is not biased.
    whole = evaluate(assay, server)
    assert (whole["run"], whole["results"]["samples"]) == (found["run"], 20 * ROUNDS)
    assert "sequential" not in whole
    assert not any("comparison decided" in reason for reason in whole["not_publishable"])


@pytest.mark.slow
def test_a_kill_in_the_middle_of_a_round_costs_no_sample(
    models: Models, assay: Cli, tmp_path: Path
) -> None:
    baseline = evaluate(assay, models.serve("one", 0.5))
    server = models.serve("other", 0.5)
    server.delay_s = 0.05
    command = asked(server, *until(baseline), "--parallel", "2")
    process = start(tmp_path, *command)
    wait_for_lines(tmp_path, "completions.jsonl", 20 * ROUNDS + 30, process)
    process.kill()
    process.communicate()
    (path,) = (p for p in (tmp_path / "results").glob("*.json") if p.stem != baseline["run"])
    left = json.loads(path.read_text())  # of the last whole round
    assert left["results"]["samples"] % 20 == 0
    assert "sequential" in left["marks"]
    server.delay_s = 0.0
    found = evaluate(assay, server, *until(baseline))
    looks = found["sequential"]["looks"]
    assert found["run"] == left["run"]
    assert [one["rounds"] for one in looks] == list(range(1, len(looks) + 1))
    assert [one["pairs"] for one in looks] == [20 * (n + 1) for n in range(len(looks))]
    samples = 20 * len(looks)
    assert samples <= sum(server.counts.values()) <= samples + 2


@pytest.mark.slow
def test_a_wider_margin_decides_at_an_earlier_look(models: Models, assay: Cli) -> None:
    baseline = evaluate(assay, models.serve("one", 0.5))
    server = models.serve("other", 0.5)
    first = evaluate(assay, server, *until(baseline, "--margin", "1"))
    assert first["sequential"]["decision"] == "undecided"
    assert first["results"]["samples"] == 20 * ROUNDS
    requests = sum(server.counts.values())
    second = evaluate(assay, server, *until(baseline, "--margin", "90"))
    looks = second["sequential"]["looks"]
    assert (second["run"], second["sequential"]["decision"]) == (first["run"], "equivalent")
    assert looks[:-1] == first["sequential"]["looks"][: len(looks) - 1]
    assert len(looks) < ROUNDS
    # The result is that of the looks which were taken, and is complete.
    assert second["results"]["samples"] == 20 * len(looks)
    assert second["coverage"]["complete"]
    assert second["coverage"]["judged_samples"] == 20 * len(looks)
    assert sum(server.counts.values()) == requests


@pytest.mark.slow
def test_a_result_with_all_samples_is_not_overwritten(
    models: Models, assay: Cli, tmp_path: Path
) -> None:
    baseline = evaluate(assay, models.serve("weak", 0.05))
    server = models.serve("strong", 0.95)
    whole = evaluate(assay, server)
    path = tmp_path / "results" / f"{whole['run']}.json"
    before = path.read_bytes()
    error = evaluate(assay, server, *until(baseline), code=2)
    assert "has all samples already" in error
    assert f"assay compare {baseline['run']} {whole['run']}" in error
    assert path.read_bytes() == before


def test_a_run_is_not_compared_with_itself(models: Models, assay: Cli, tmp_path: Path) -> None:
    server = models.serve("weak", 0.05)
    baseline = evaluate(assay, server)
    path = tmp_path / "results" / f"{baseline['run']}.json"
    before = path.read_bytes()
    assert "the same model and settings" in evaluate(assay, server, *until(baseline), code=2)
    assert path.read_bytes() == before


def test_another_protocol_is_refused_before_anything_is_generated(
    models: Models, assay: Cli, tmp_path: Path
) -> None:
    baseline = evaluate(assay, models.serve("weak", 0.05))
    server = models.serve("strong", 0.95)
    error = evaluate(assay, server, *until(baseline), "--max-tokens", "99", code=2)
    assert "its protocol differs (decoding.max_tokens)" in error
    assert not server.counts
    assert [p.name for p in (tmp_path / "results").iterdir() if p.is_dir()] == [baseline["run"]]

"""The store of completions: what counts as the same request, damage, and fresh runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assay import benchmarks
from assay.pipeline.plan import build_requests
from assay.prompts import strategies
from assay.protocol import PromptSettings
from assay.runs import CompletionStore
from assay.types import Completion, Decoding, Message, Prompt, Request

GREEDY, SAMPLED = Decoding(), Decoding(temperature=0.8, top_k=40)
PROMPT = Prompt(messages=(Message("user", "Write f."),))
REQUEST = Request("t/0", 0, PROMPT, GREEDY, 7)


def completion(request: Request, text: str = "def f(): pass") -> Completion:
    return Completion(*request.key, text, "stop", 5, 9, 120.0, request.seed, False)


def open_store(folder: Path, *conditions: object, earlier: bool = True) -> CompletionStore:
    return CompletionStore(folder / "completions", conditions, earlier=earlier)


def test_a_completion_is_found_as_one_of_the_new_request(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put(store.key(REQUEST), completion(REQUEST))
    other = replace(REQUEST, task_id="other/0", seed=99)
    found = store.get(store.key(other), other)
    assert found == replace(completion(REQUEST), task_id="other/0", seed=99, reused=True)


@pytest.mark.parametrize(
    "other",
    [
        replace(REQUEST, prompt=Prompt(text="Write f.")),
        replace(REQUEST, prompt=replace(PROMPT, stop=("\n#",))),
        replace(REQUEST, decoding=Decoding(max_tokens=511)),
        replace(REQUEST, decoding=SAMPLED),
        replace(REQUEST, sample=1),
    ],
)
def test_another_request_has_another_key(other: Request, tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert store.key(other) != store.key(REQUEST)


def test_a_seed_counts_only_where_it_has_an_effect(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert store.key(replace(REQUEST, seed=8)) == store.key(REQUEST)
    sampled = replace(REQUEST, decoding=SAMPLED)
    assert store.key(replace(sampled, seed=8)) != store.key(sampled)
    # The seed of the run is part of the sample's own.
    assert store.key(replace(sampled, decoding=replace(SAMPLED, seed=3))) == store.key(sampled)


def test_another_model_has_another_key(tmp_path: Path) -> None:
    assert open_store(tmp_path, "a").key(REQUEST) != open_store(tmp_path, "b").key(REQUEST)


def test_a_fresh_store_finds_only_its_own(tmp_path: Path) -> None:
    before, fresh = open_store(tmp_path), open_store(tmp_path, earlier=False)
    key = before.key(REQUEST)
    before.put(key, completion(REQUEST))
    assert fresh.get(key, REQUEST) is None
    fresh.put(key, completion(REQUEST, "new"))
    found = fresh.get(key, REQUEST)
    assert found is not None
    assert found.text == "new"


@pytest.mark.parametrize("damage", [b"", b"{}", b"0" * 64 + b"\n{}"])
def test_a_damaged_entry_counts_as_missing(damage: bytes, tmp_path: Path) -> None:
    store = open_store(tmp_path)
    key = store.key(REQUEST)
    store.put(key, completion(REQUEST))
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    file.write_bytes(damage)
    assert store.get(key, REQUEST) is None
    store.put(key, completion(REQUEST))
    assert store.get(key, REQUEST) is not None


@pytest.mark.parametrize(
    "failed",
    [
        replace(completion(REQUEST), error="busy", finish_reason="error"),
        replace(completion(REQUEST), finish_reason="prompt-too-long"),
    ],
)
def test_a_request_without_an_answer_is_asked_again(failed: Completion, tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put(store.key(REQUEST), failed)
    assert store.get(store.key(REQUEST), REQUEST) is None


def test_only_new_requests_reach_the_model(tmp_path: Path) -> None:
    asked: list[str] = []

    def complete(requests: Iterable[Request]) -> Iterator[Completion]:
        for request in requests:
            asked.append(request.task_id)
            yield completion(request, request.prompt.text)

    wanted = [Request(f"t/{n}", 0, Prompt(text=f"# {n}"), GREEDY, n) for n in range(6)]
    store = open_store(tmp_path)
    first = list(store.reuse(complete)(wanted[1:4]))
    assert [c.reused for c in first] == [False] * 3
    assert not store.has_all(wanted)
    second = list(store.reuse(complete)(wanted))
    assert asked == ["t/1", "t/2", "t/3", "t/0", "t/4", "t/5"]
    assert {c.task_id: c.reused for c in second} == {f"t/{n}": 1 <= n < 4 for n in range(6)}
    assert {c.task_id: c.text for c in second} == {f"t/{n}": f"# {n}" for n in range(6)}
    assert store.has_all(wanted)
    assert all(c.reused for c in store.reuse(complete)(wanted))
    assert len(asked) == 6


@pytest.mark.slow
@pytest.mark.parametrize("form", ["chat", "text"])
def test_benchmarks_with_the_same_prompts_share_their_requests(form: str, tmp_path: Path) -> None:
    asking = PromptSettings(form, "own" if form == "chat" else "none")  # type: ignore[arg-type]
    store = open_store(tmp_path)

    def keys(name: str) -> set[str]:
        found = benchmarks.load(name)
        samples = [(problem.task_id, n) for problem in found.problems for n in range(2)]
        strategy = strategies.get("standard")
        return set(map(store.key, build_requests(samples, found, strategy, asking, SAMPLED)))

    base, plus = keys("humaneval"), keys("humanevalplus")
    assert len(base) == len(plus) == 2 * 164
    assert len(base & plus) == 2 * 163  # EvalPlus corrected the prompt of one task

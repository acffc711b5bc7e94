"""The shapes of TRL, verl and OpenRLHF: what each trainer passes and expects back."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.reward import OpenRlhfReward, TrlReward, VerlReward
from assay.reward.shapes import read_columns, response_of, text_of

EXAMPLES = Path(__file__).parents[2] / "examples" / "reward"
RIGHT = "```python\ndef celsius_to_fahrenheit(celsius):\n    return celsius * 9 / 5 + 32\n```"
WRONG = "```python\ndef celsius_to_fahrenheit(celsius):\n    return 1\n```"
SUM = "print(sum(map(int, input().split())))"
ADD = json.dumps({"inputs": ["1 2\n", "0 0\n"], "outputs": ["3\n", "0\n"]})


def load(path: Path, name: str) -> Any:
    """Return an object of a file as verl and OpenRLHF load it."""
    spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def test_trl_gets_a_number_or_none_for_each_completion() -> None:
    reward = TrlReward(benchmark="mini", workers=2)
    metrics: dict[str, float] = {}
    found = reward(
        prompts=["p"] * 3,
        completions=[RIGHT, WRONG, WRONG],
        completion_ids=[[1], [2], [3]],
        task_id=["mini/0"] * 3,
        trainer_state=None,
        log_extra=None,
        log_metric=metrics.__setitem__,
    )
    assert found == [1.0, 0.0, 0.0]
    assert metrics == {"assay/passed": 1 / 3, "assay/invalid": 0.0}
    assert reward.__name__ == "assay"
    assert not inspect.iscoroutinefunction(reward.__call__)
    reward.close()


def test_trl_logs_no_rate_of_nothing() -> None:
    reward = TrlReward()
    metrics: dict[str, float] = {}
    assert reward(prompts=[], completions=[], tests=[], log_metric=metrics.__setitem__) == []
    assert metrics == {"assay/invalid": 0.0}
    reward.close()


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("code", "code"),
        ([{"role": "assistant", "content": "code"}], "code"),
        ([{"role": "assistant", "content": "code"}, {"role": "tool", "content": "x"}], "code"),
        ([{"role": "assistant", "content": [{"text": "co"}, {"text": "de"}]}], "code"),
        ([{"role": "assistant", "content": None}], ""),
        ([], ""),
    ],
)
def test_the_text_of_a_completion_of_trl(completion: Any, text: str) -> None:
    assert text_of(completion) == text


def test_the_columns_of_trl() -> None:
    columns = {"tests": [None, "{}"], "task_id": ["mini/0", None], "benchmark": ["mini", None]}
    assert read_columns(columns, 2) == [{"task_id": "mini/0", "benchmark": "mini"}, "{}"]
    assert read_columns({"task_id": ["a"]}, 1) == [{"task_id": "a", "benchmark": None}]
    with pytest.raises(UsageError, match="no column tests or task_id"):
        read_columns({"answer": ["a"]}, 1)


def test_verl_loads_the_example_and_calls_it_as_its_managers_do() -> None:
    """As ``get_custom_reward_fn`` and the naive, batch and loop managers of verl b178a3cd do."""
    raw = load(EXAMPLES / "verl_reward.py", "compute_score")
    assert not inspect.iscoroutinefunction(raw)
    compute_score = partial(lambda fn, extra, **given: fn(**{**given, **extra}), raw, {})
    mini = {"data_source": "mini", "ground_truth": "mini/0", "extra_info": {"num_turns": None}}
    apps = {"data_source": "apps", "ground_truth": ADD, "extra_info": {}}

    async def run_loop() -> list[dict[str, float]]:
        loop = asyncio.get_running_loop()
        calls = [
            loop.run_in_executor(None, partial(compute_score, solution_str=text, **row))
            for text, row in ((RIGHT, mini), (WRONG, mini), (SUM, apps))
        ]
        return list(await asyncio.gather(*calls))

    extra = defaultdict(list)
    found = asyncio.run(run_loop())
    for score in found:
        for key, value in score.items():
            extra[key].append(value)
    assert dict(extra) == {"score": [1, 0, 1], "acc": [1, 0, 1], "invalid": [0, 0, 0]}
    batch = raw.batch(
        data_sources=["mini", "apps"],
        solution_strs=[RIGHT, "print(0)"],
        ground_truths=["mini/0", ADD],
        extra_infos=[{}, {}],
        unknown_setting=1,
    )
    assert [score["score"] for score in batch] == [1.0, 0.5]
    assert load(EXAMPLES / "verl_reward.py", "compute_scores").__name__ == "batch"
    raw.close()


def test_verl_takes_arrays_of_a_table() -> None:
    class Array(list[Any]):
        def tolist(self) -> list[Any]:
            return list(self)

    reward = VerlReward(workers=1)
    truth = {"inputs": Array(["1 2\n"]), "outputs": Array(["3\n"])}
    assert reward("apps", "print(3)", truth)["score"] == 1.0
    reward.close()


class Tensor(list[float]):
    """Stand for torch's, which the default tests do without."""


def test_openrlhf_loads_the_example_and_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``SingleTurnAgentExecutor`` of OpenRLHF 3c3be623 does: one completion at a time."""
    if "torch" not in sys.modules:
        torch = type(sys)("torch")
        torch.tensor = lambda values, dtype=None: Tensor(values)  # type: ignore[attr-defined]
        torch.float = None  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "torch", torch)
    reward_func = load(EXAMPLES / "openrlhf_reward.py", "reward_func")
    label = json.dumps({"benchmark": "mini", "task_id": "mini/0"})

    async def run() -> list[dict[str, Any]]:
        texts = [f"Convert.\n{text}<|im_end|>" for text in (RIGHT, WRONG)]
        calls = [asyncio.to_thread(reward_func, [t], ["Convert.\n"], [label]) for t in texts]
        return list(await asyncio.gather(*calls))

    right, wrong = asyncio.run(run())
    assert [float(one["rewards"][0]) for one in (right, wrong)] == [1.0, 0.0]
    assert [float(one["scores"][0]) for one in (right, wrong)] == [1.0, 0.0]
    assert {name: float(tensor[0]) for name, tensor in right["extra_logs"].items()} == {
        "passed": 1.0, "invalid": 0.0,
    }  # fmt: skip
    reward_func.close()


WORDS = st.text(max_size=30)


@given(WORDS, WORDS)
def test_a_response_is_what_follows_the_prompt(prompt: str, response: str) -> None:
    assert response_of(prompt + response, prompt) == response
    respaced = prompt.replace(" ", "  ")
    text = response_of(respaced + "=" + response, prompt)
    space = text.removesuffix("=" + response)  # at most what ends the prompt
    assert text == space + "=" + response
    assert respaced[len(respaced.rstrip()) :].endswith(space)


def test_a_query_without_its_prompt_is_refused() -> None:
    with pytest.raises(UsageError, match="does not begin with its prompt"):
        response_of("rest of the prompt, code", "A prompt that was cut off")


def test_openrlhf_is_importable_without_torch() -> None:
    assert OpenRlhfReward(invalid=0.0).invalid == 0.0

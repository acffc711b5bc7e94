"""``assay prompt``."""

from __future__ import annotations

import json

import pytest

from assay.prompts import strategies
from assay.types import Benchmark
from tests.conftest import Cli


@pytest.mark.parametrize("strategy", ["standard", "scot", "few-shot", "cgo"])
@pytest.mark.parametrize("form", ["chat", "text"])
def test_what_a_strategy_sends(assay: Cli, mini: Benchmark, strategy: str, form: str) -> None:
    problem = mini.problems[2]
    sent = strategies.get(strategy).build(problem, form)  # type: ignore[arg-type]
    asked = ("prompt", "mini", problem.task_id, "--strategy", strategy, "--prompt-form", form)
    shown = assay(*asked)
    assert shown.returncode == 0, shown.stderr
    for text in (*(message.content for message in sent.messages), sent.text):
        assert text in shown.stdout
    told = json.loads(assay(*asked, "--json").stdout)
    assert told["prompt"]["messages"] == [
        {"role": m.role, "content": m.content} for m in sent.messages
    ]
    assert (told["prompt"]["text"], told["prompt"]["stop"]) == (sent.text, list(sent.stop))
    assert told["rendered"] is None


@pytest.mark.slow
@pytest.mark.model
def test_what_a_model_gets(assay: Cli, mini: Benchmark) -> None:
    number = mini.problems[0].task_id.rpartition("/")[2]
    shown = assay("prompt", "mini", number, "--model", "default").stdout
    assert "--- text\n<|im_start|>system\n" in shown
    assert "<|im_start|>assistant\n\n--- " in shown  # the template ends with a line break
    told = json.loads(assay("prompt", "mini", number, "--model", "default", "--json").stdout)
    rendered = told["rendered"]
    assert "".join(rendered["pieces"]) == rendered["text"]
    assert len(rendered["tokens"]) == len(rendered["pieces"])
    assert f"--- {len(rendered['tokens'])} tokens\n" in shown
    assert rendered["tokens"][:2] == [1, 9690]
    assert mini.problems[0].prompt.strip() in rendered["text"]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (("mini", "none"), "none: is not a task of mini"),
        (("mini", "0", "--strategy", "hypnosis"), "hypnosis"),
        (("mini", "0", "--model", "nowhere.gguf"), "nowhere.gguf: is not a file or folder"),
    ],
)
def test_what_cannot_be_shown_is_said_in_one_line(
    assay: Cli, asked: tuple[str, ...], why: str
) -> None:
    done = assay("prompt", *asked)
    assert done.returncode == 2
    assert why in done.stderr
    assert done.stderr.count("\n") == 1

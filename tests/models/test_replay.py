"""Recorded completions in place of a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.errors import ModelError, UsageError
from assay.models import EngineOptions, open_model, open_recorded
from assay.types import Decoding, Prompt, Request


def request(task_id: str, sample: int) -> Request:
    return Request(task_id, sample, Prompt(text="p"), Decoding(), seed=5)


def write(path: Path, *records: object) -> str:
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    return str(path)


def test_samples_of_a_task_in_the_order_of_the_file(tmp_path: Path) -> None:
    spec = write(
        tmp_path / "r.jsonl",
        {"task_id": "a", "solution": "one"},
        {"task_id": "a", "solution": "two"},
    )
    model = open_model(spec)
    made = list(model.generate([request("a", 1), request("a", 0)]))
    assert [(c.sample, c.text, c.error) for c in made] == [(1, "two", None), (0, "one", None)]


def test_our_own_lines_keep_their_sample_number_and_finish_reason(tmp_path: Path) -> None:
    record = {"task_id": "a", "sample": 3, "text": "t", "finish_reason": "length"}
    (made,) = open_model(write(tmp_path / "r", record)).generate([request("a", 3)])
    assert (made.text, made.finish_reason, made.seed) == ("t", "length", 5)


def test_what_is_not_in_the_file_is_an_error_of_that_sample_only(tmp_path: Path) -> None:
    model = open_model(write(tmp_path / "r", {"task_id": "a", "solution": "x"}))
    made = list(model.generate([request("b", 0), request("a", 0)]))
    assert made[0].error == "the file holds no sample 0 of b"
    assert made[1].error is None


def test_continuations_are_told_from_whole_programs(tmp_path: Path) -> None:
    whole = open_model(write(tmp_path / "w", {"task_id": "a", "solution": "x"}))
    rest = open_model(write(tmp_path / "r", {"task_id": "a", "completion": "x"}))
    assert (whole.identity.prompt_form, rest.identity.prompt_form) == ("chat", "text")


def test_an_error_recorded_stays_an_error(tmp_path: Path) -> None:
    record = {
        "task_id": "a",
        "sample": 0,
        "text": "",
        "finish_reason": "error",
        "error": "too long",
    }
    (made,) = open_model(write(tmp_path / "r", record)).generate([request("a", 0)])
    assert made.error == "too long"


def test_a_request_that_was_repeated_replaces_the_failed_one(tmp_path: Path) -> None:
    """A run's own completions.jsonl has both lines if a failed request was sent again."""
    error = {"task_id": "a", "sample": 0, "text": "", "finish_reason": "error", "error": "gone"}
    right = {"task_id": "a", "sample": 0, "text": "x"}
    model = open_recorded(write(tmp_path / "r", error, error, right))
    assert model.list_recorded() == [("a", 0)]
    (made,) = model.generate([request("a", 0)])
    assert (made.text, made.error) == ("x", None)
    with pytest.raises(ModelError, match="sample 0 of a occurs twice"):
        open_recorded(write(tmp_path / "r", right, error))


def test_a_line_cut_in_half_is_a_sample_that_is_missing(tmp_path: Path) -> None:
    """With --partial, a file of whole rounds and half a line more must not be complete."""
    path = tmp_path / "r.jsonl"
    spec = write(path, {"task_id": "a", "solution": "x"})
    whole = path.read_text()
    path.write_text(whole + '{"task_id": "a", "solution": "de')
    model = open_recorded(spec, partial=True)
    first, second = model.generate([request("a", 0), request("a", 1)])
    assert (first.error, second.error) == (None, "its line is cut off")
    own = '{"task_id": "a", "sample": 7, "te'
    path.write_text(whole + own)
    assert open_recorded(spec, partial=True).list_recorded() == [("a", 0), ("a", 7)]
    path.write_text(whole + '{"task_id": "')
    with pytest.raises(ModelError, match="is cut off before its task_id. Delete the line"):
        open_recorded(spec, partial=True)


OPTIONS = [
    ("--device", EngineOptions(device="cuda")),
    ("--dtype", EngineOptions(dtype="float16")),
    ("--adapter", EngineOptions(adapter="a")),
    ("--threads", EngineOptions(threads=2)),
    ("--prompt-form", EngineOptions(prompt_form="text")),
    ("--engine-option", EngineOptions(engine_options=("a=1",))),
]


@pytest.mark.parametrize(("flag", "options"), OPTIONS)
def test_settings_that_mean_nothing_here_are_refused(
    tmp_path: Path, flag: str, options: EngineOptions
) -> None:
    """Otherwise ``--device cuda`` on a machine without a GPU ends with exit code 0."""
    spec = write(tmp_path / "r", {"task_id": "a", "solution": "x"})
    with pytest.raises(UsageError, match=f"^{flag}: the replay engine has no such setting"):
        open_model(f"replay:{spec}", options)


def test_a_runs_own_file_keeps_its_form(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"model": {"prompt_form": "text"}}')
    spec = write(tmp_path / "completions.jsonl", {"task_id": "a", "sample": 0, "text": "x"})
    assert open_model(spec).identity.prompt_form == "text"


@pytest.mark.parametrize(
    "field",
    [
        {"sample": "abc"},
        {"sample": None},
        {"tokens_generated": None},
        {"tokens_generated": "12"},
        {"inference_ms": None},
        {"finish_reason": "eos"},
    ],
)
def test_a_mistyped_field_is_named_before_anything_is_written(
    tmp_path: Path, field: dict[str, object]
) -> None:
    spec = write(tmp_path / "r.jsonl", {"task_id": "a", "text": "x", **field})
    with pytest.raises(ModelError, match=f"line 1: field '{next(iter(field))}'"):
        open_model(spec)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"task_id": "a", "solution": "x"}\n{"task_id": "b"}\n', "line 2: is not a completion"),
        ('{"task_id": "a", "solution": "x"}\nnonsense\n', "line 2: not valid JSON"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(content)
    with pytest.raises(ModelError, match=complaint):
        open_model(f"replay:{path}")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="none: no such file"):
        open_model(f"replay:{tmp_path / 'none'}")

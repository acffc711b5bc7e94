"""Completions in the formats of other harnesses."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ModelError
from assay.models import open_recorded
from assay.models.engines.replay.replay_model import records

CODE = "def f(x):\n    return x  # é\n"


def found(path: Path) -> list[dict[str, Any]]:
    return [record for _, record in records(path)]


def test_lines_plain_and_packed(tmp_path: Path) -> None:
    line = json.dumps({"task_id": "HumanEval/0", "completion": CODE}) + "\n"
    plain, packed = tmp_path / "s.jsonl", tmp_path / "s.jsonl.gz"
    plain.write_text(f"\n{line}\n{line}")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert found(plain) == found(packed) == [json.loads(line)] * 2
    assert [where for where, _ in records(plain)] == [f"{plain} line 2", f"{plain} line 4"]


def test_a_folder_of_evalplus_in_the_order_of_numbers(tmp_path: Path) -> None:
    for task, sample in (("HumanEval_10", 0), ("HumanEval_2", 10), ("HumanEval_2", 9)):
        (tmp_path / task).mkdir(exist_ok=True)
        (tmp_path / task / f"{sample}.py").write_text(f"{CODE}# {sample}\n", encoding="utf-8")
    assert [(r["task_id"], r["solution"][-3:]) for r in found(tmp_path)] == [
        ("HumanEval/2", " 9\n"),
        ("HumanEval/2", "10\n"),
        ("HumanEval/10", " 0\n"),
    ]
    model = open_recorded(str(tmp_path))
    assert model.list_recorded() == [("HumanEval/2", 0), ("HumanEval/2", 1), ("HumanEval/10", 0)]
    first = model.identity.weights_sha256
    (tmp_path / "HumanEval_2" / "9.py").write_text("pass\n")
    assert open_recorded(str(tmp_path)).identity.weights_sha256 != first


def test_result_files_of_evalplus_and_bigcodebench(tmp_path: Path) -> None:
    sample = {"task_id": "Mbpp/2", "solution": CODE, "base_status": "pass", "plus_status": "fail"}
    path = tmp_path / "x_eval_results.json"
    path.write_text(json.dumps({"date": "", "hash": "", "eval": {"Mbpp/2": [sample, sample]}}))
    assert found(path) == [{"task_id": "Mbpp/2", "solution": CODE}] * 2
    path.write_text(json.dumps({"date": "", "eval": {"BigCodeBench/0": [sample]}}))
    assert found(path) == [{"task_id": "BigCodeBench/0", "solution": CODE}]


def test_packed_result_files(tmp_path: Path) -> None:
    path = tmp_path / "x_eval_results.json.gz"
    content = json.dumps({"eval": {"Mbpp/2": [{"task_id": "Mbpp/2", "solution": CODE}]}})
    path.write_bytes(gzip.compress(content.encode()))
    assert found(path) == [{"task_id": "Mbpp/2", "solution": CODE}]


@pytest.mark.parametrize("count", [1, 2])
def test_lines_in_a_file_that_is_named_otherwise(tmp_path: Path, count: int) -> None:
    line = {"task_id": "HumanEval/0", "completion": CODE}
    plain, packed = tmp_path / "s.json", tmp_path / "s.json.gz"
    plain.write_text(f"{json.dumps(line)}\n" * count)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert found(plain) == found(packed) == [line] * count


@pytest.mark.parametrize("name", ["s.jsonl.gz", "s.json.gz"])
def test_damaged_files_are_said_to_be(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    lines = "".join(
        json.dumps({"task_id": f"t/{i}", "solution": f"{CODE}{i * i}"}) + "\n" for i in range(999)
    )
    whole = gzip.compress(lines.encode())
    middle = len(whole) // 2
    for damaged in (
        whole[:middle],
        whole[:-8] + bytes(8),  # the digest
        whole[:2] + b"\0" + whole[3:],  # the method
        whole[:10] + b"\xff" * 20 + whole[30:],
    ):
        path.write_bytes(damaged)
        with pytest.raises(ModelError, match="is damaged or cut short"):
            found(path)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"results": {}}', r"\(no 'eval'\)"),
        ("[1]", r"\(no 'eval'\)"),
        ("{", r"line 1: not valid JSON .*Give a JSONL file of completions"),
    ],
)
def test_other_json_is_refused(tmp_path: Path, content: str, why: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ModelError, match=why):
        found(path)


def test_an_empty_folder_says_what_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"HumanEval_0/0\.py"):
        found(tmp_path)


def test_a_result_without_its_program_is_no_completion(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"eval": {"t/0": [{"task_id": "t/0"}]}}))
    with pytest.raises(ModelError, match="is not a completion"):
        open_recorded(str(path))

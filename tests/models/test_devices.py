"""One model on several devices: processes that share a queue. Two CPU processes stand for GPUs."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ModelError, UsageError
from assay.models import EngineOptions, open_model, start_early
from assay.models.devices import DevicesModel, device_environment, parse_devices
from assay.models.workers.process_model import ProcessModel
from assay.progress import Silent
from assay.types import Decoding, Prompt, Request

pytest.importorskip("xllamacpp", reason="needs the gguf extra")
from tests.models.small_models import write_small

DECODING = Decoding(max_tokens=8, temperature=1.0, top_k=40)
REQUESTS = [
    Request(f"t/{number}", sample, Prompt(text=f"# {number}\ndef f"), DECODING, number * 9 + sample)
    for number in range(12)
    for sample in range(2)
]  # fmt: skip


class Counter(Silent):
    def __init__(self) -> None:
        self.loads = 0

    def loading(self) -> None:
        self.loads += 1


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(write_small(tmp_path / "small.gguf", ("Q8_0",)))


def open_two(path: str) -> DevicesModel:
    model = open_model(path, EngineOptions(devices="cpu,cpu", parallel=2))
    assert isinstance(model, DevicesModel)
    return model


def processes(model: DevicesModel) -> list[Any]:
    return [m._process for m in model.members if isinstance(m, ProcessModel) and m._process]


def test_texts_are_those_of_one_process(path: str) -> None:
    alone = open_model(path, EngineOptions(device="cpu", parallel=2))
    expected = {c.key: (c.text, c.seed, c.error) for c in alone.generate(REQUESTS)}
    model, counter = open_two(path), Counter()
    model.reporter = counter
    with model.keep_loaded() as loading:
        assert loading == "kept"
        model.preload(DECODING)
        found = {c.key: (c.text, c.seed, c.error) for c in model.generate(REQUESTS)}
        answered = [process.answered_tokens for process in processes(model)]
        again = {c.key: (c.text, c.seed, c.error) for c in model.generate(REQUESTS[:4])}
        assert model.describe().to_json()["devices"] == ["cpu", "cpu"]
    assert len(expected) == len(REQUESTS)
    assert found == expected
    assert again == {key: expected[key] for key in again}
    assert len(answered) == 2
    assert all(answered)  # both have worked
    assert counter.loads == 2
    assert processes(model) == []
    assert model.identity == alone.identity


def test_processes_that_were_started_serve_the_first_call(path: str) -> None:
    model = open_two(path)
    with start_early(model):
        first = processes(model)
        assert len(first) == 2
        with model.keep_loaded():
            assert len(list(model.generate(REQUESTS))) == len(REQUESTS)
            assert processes(model) == first
    assert processes(model) == []


def test_processes_that_were_not_needed_are_ended(path: str) -> None:
    model = open_two(path)
    with start_early(model):
        unused = processes(model)
    assert processes(model) == []
    assert not any(process.is_running for process in unused)


def test_a_device_that_fails_ends_the_others(path: str) -> None:
    others = set(threading.enumerate())
    model = open_two(path)
    with model.keep_loaded():
        model.preload(DECODING)
        processes(model)[0].kill()
        with pytest.raises(ModelError, match="ended unexpectedly"):
            list(model.generate(REQUESTS))
        assert processes(model) == []
    new = set(threading.enumerate()) - others
    assert not any("_serve" in thread.name for thread in new)


def test_a_stopped_reader_leaves_no_process(path: str) -> None:
    model = open_two(path)
    answers = model.generate(REQUESTS)
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    assert processes(model) == []


def test_one_device_is_an_ordinary_model(path: str) -> None:
    model = open_model(path, EngineOptions(devices="cpu"))
    assert isinstance(model, ProcessModel)


@pytest.mark.parametrize("devices", ["x", "0,", "cuda:0", "-1", "0;1"])
def test_other_names_are_refused(devices: str) -> None:
    with pytest.raises(UsageError, match="--devices"):
        parse_devices(EngineOptions(devices=devices))


def test_a_contradiction_is_refused() -> None:
    with pytest.raises(UsageError, match="contradicts"):
        parse_devices(EngineOptions(devices="0,1", device="cpu"))


def test_a_process_sees_only_its_gpu() -> None:
    assert device_environment(["1"]) == {"CUDA_VISIBLE_DEVICES": "1"}
    assert device_environment(["0", "3"]) == {"CUDA_VISIBLE_DEVICES": "0,3"}
    assert device_environment(["cpu"]) == {}


def test_an_engine_without_processes_refuses_devices(tmp_path: Path) -> None:
    recorded = tmp_path / "made.jsonl"
    recorded.write_text('{"task_id": "mini/0", "completion": "x"}\n')
    with pytest.raises(UsageError, match="--devices"):
        open_model(f"replay:{recorded}", EngineOptions(devices="0,1"))

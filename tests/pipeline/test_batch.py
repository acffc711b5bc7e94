"""How a batch is made, continued and refused, with a model of the test's own."""

from __future__ import annotations

import dataclasses
import json
import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from assay import models
from assay.errors import AssayError, ModelError, RunError, UsageError
from assay.models import EngineFacts, EngineOptions, open_model
from assay.pipeline import Sampling, sample_seed
from assay.pipeline.batch.generation import BatchReport, run_batch
from assay.progress import Silent
from assay.types import Completion, ModelIdentity, Request, Verdict
from tests.pipeline.test_batch_lines import CONFIG, line


@dataclass(frozen=True, slots=True)
class OneByOne(EngineFacts):
    parallel: int = 1


class EchoModel:
    """Answers with the prompt, and breaks down, fails or looks on where told to."""

    def __init__(
        self, weights: str = "w", break_after: int = 10**9, failing: frozenset[str] = frozenset()
    ) -> None:
        self.identity = ModelIdentity("echo", "test", weights, "chat")
        self._break_after = break_after
        self._failing = failing
        self.asked: list[str] = []
        self.options = EngineOptions()

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for number, request in enumerate(requests):
            if number == self._break_after:
                raise ModelError("the engine is gone")
            self.asked.append(request.task_id)
            error = "too long" if request.task_id in self._failing else None
            yield Completion(
                request.task_id, request.sample, request.prompt.text, "error" if error else "stop",
                3, 2, 4.0, request.seed, False, error=error,
            )  # fmt: skip

    def describe(self) -> EngineFacts:
        return OneByOne()

    def close(self) -> None:
        pass


class Watcher(Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def begin(self, total: int, verdicts: list[Verdict], missing: int) -> None:
        assert verdicts == []
        self.notes.append(f"{total - missing}/{total}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = (line(prompt=f"text {i}", task_id=f"t{i}") for i in range(6))
    (tmp_path / "in.jsonl").write_bytes(b"".join(texts))
    return tmp_path


Patch = pytest.MonkeyPatch


def run(
    monkeypatch: Patch,
    folder: Path,
    model: EchoModel | None = None,
    fresh: bool = False,
    **asked: Any,
) -> tuple[BatchReport, Watcher]:
    model = model or EchoModel()

    def opened(_: str, options: EngineOptions, __: object) -> EchoModel:
        model.options = options
        return model

    monkeypatch.setattr(models, "open_model", opened)
    watcher = Watcher()
    config = dataclasses.replace(CONFIG, **asked)
    source, output = folder / "in.jsonl", folder / "out.jsonl"
    return run_batch(config, source, output, watcher, fresh=fresh), watcher


def written(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder / "out.jsonl").read_text().splitlines()]


def test_every_prompt_gets_a_line(monkeypatch: Patch, folder: Path) -> None:
    report, watcher = run(monkeypatch, folder, sampling=Sampling(max_tokens=9))
    lines = written(folder)
    assert [(found["task_id"], found["text"]) for found in lines] == [
        (f"t{i}", f"text {i}") for i in range(6)
    ]
    assert lines[0].pop("request_digest")
    assert lines[0] == {
        "task_id": "t0", "text": "text 0", "tokens_generated": 2, "tok_per_sec": 500.0,
        "inference_ms": 4.0, "used_gpu": False, "finish_reason": "stop",
        "seed": sample_seed(0, "t0", 0), "prompt_tokens": 3,
    }  # fmt: skip
    assert (report.prompts, report.made, report.failed, report.tokens_generated) == (6, 6, 0, 12)
    assert watcher.notes == ["0/6", "engine test: parallel 1"]
    about = json.loads((folder / "out.jsonl.run.json").read_text())
    assert about["model"]["weights_sha256"] == "w"
    assert about["decoding"]["max_tokens"] == 9
    assert about["environments"][0]["engine"] == {"parallel": 1}


def test_samples_are_named_by_task_and_number(monkeypatch: Patch, folder: Path) -> None:
    (folder / "in.jsonl").write_bytes(line(prompt="a") + line(prompt="b", task_id="x") + b"{\n")
    report, _ = run(monkeypatch, folder, sampling=Sampling(2, temperature=0.8))
    assert sorted(found["task_id"] for found in written(folder)) == [
        "0_s0", "0_s1", "2_s0", "2_s1", "x_s0", "x_s1",
    ]  # fmt: skip
    assert len({found["seed"] for found in written(folder) if "error" not in found}) == 4
    assert (report.prompts, report.made, report.failed) == (6, 4, 2)


def test_a_line_with_temperature_0_has_one_sample(monkeypatch: Patch, folder: Path) -> None:
    """More samples would be copies of one text."""
    texts = (line(prompt="p", task_id="cold", temperature=0), line(prompt="q", task_id="warm"))
    (folder / "in.jsonl").write_bytes(b"".join(texts))
    model = EchoModel()
    note = "temperature 0 gives the same text every time: 1 sample is generated for 1 line with it"
    for kept in (0, 4):
        report, watcher = run(monkeypatch, folder, model, sampling=Sampling(3))
        assert (report.prompts, report.kept, report.made) == (4, kept, 4 - kept)
        assert note in watcher.notes
    assert model.asked == ["cold", "warm", "warm", "warm"]
    names = ["cold_s0", "warm_s0", "warm_s1", "warm_s2"]
    assert [found["task_id"] for found in written(folder)] == names


def test_an_engine_that_breaks_down_loses_nothing(monkeypatch: Patch, folder: Path) -> None:
    with pytest.raises(ModelError, match="the engine is gone"):
        run(monkeypatch, folder, EchoModel(break_after=4))
    second = EchoModel()
    report, watcher = run(monkeypatch, folder, second)
    assert watcher.notes[0] == "4/6"
    assert second.asked == ["t4", "t5"]
    assert (report.kept, report.made) == (4, 2)
    assert [found["task_id"] for found in written(folder)] == [f"t{i}" for i in range(6)]
    third = EchoModel()
    report, _ = run(monkeypatch, folder, third)
    assert third.asked == []
    assert (report.kept, report.made) == (6, 0)


@pytest.mark.parametrize("cut", [1, 20, 10**6])
def test_a_torn_last_line_is_made_again(monkeypatch: Patch, folder: Path, cut: int) -> None:
    run(monkeypatch, folder)
    path = folder / "out.jsonl"
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    path.write_bytes(whole[: -min(cut, len(last) - 1)])
    model = EchoModel()
    run(monkeypatch, folder, model)
    assert model.asked == ["t5"]
    assert path.read_bytes() == whole


def test_what_failed_is_tried_again_and_has_one_line_in_the_end(
    monkeypatch: Patch, folder: Path
) -> None:
    with (folder / "in.jsonl").open("ab") as file:
        file.write(b"broken\n")
    report, _ = run(monkeypatch, folder, EchoModel(failing=frozenset({"t1", "t3"})))
    assert (report.made, report.failed) == (4, 3)
    assert report.first_error.startswith("6: not valid JSON")
    errors = {found["task_id"]: found["error"] for found in written(folder) if "error" in found}
    assert errors["t1"] == errors["t3"] == "too long"
    second = EchoModel(failing=frozenset({"t3"}))
    run(monkeypatch, folder, second)
    assert second.asked == ["t1", "t3"]
    assert len(written(folder)) == 7
    fixed = (folder / "in.jsonl").read_bytes().replace(b"broken", line(prompt="whole").strip())
    (folder / "in.jsonl").write_bytes(fixed)
    report, _ = run(monkeypatch, folder)
    assert (report.kept, report.made, report.failed) == (5, 2, 0)
    texts = {found["task_id"]: found["text"] for found in written(folder)}
    assert texts == {f"t{i}": f"text {i}" for i in range(6)} | {"6": "whole"}
    assert len(written(folder)) == 7
    assert {path.name for path in folder.iterdir()} == {
        "in.jsonl", "out.jsonl", "out.jsonl.run.json",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("weights", "asked", "said"),
    [
        ("other", {}, "model.weights_sha256 was w, is other"),
        ("w", {"sampling": Sampling(temperature=0.5)}, "decoding.temperature was 0.0, is 0.5"),
        ("w", {"sampling": Sampling(max_tokens=7)}, "decoding.max_tokens was 512, is 7"),
        ("w", {"sampling": Sampling(2)}, "n_samples was 1, is 2"),
        ("w", {"chat": True}, "chat was False, is True"),
    ],
)
def test_continuing_in_another_way_is_refused(
    monkeypatch: Patch, folder: Path, weights: str, asked: dict[str, Any], said: str
) -> None:
    run(monkeypatch, folder, EchoModel(failing=frozenset({"t1"})))
    before = (folder / "out.jsonl").read_bytes()
    model = EchoModel(weights)
    with pytest.raises(RunError) as refusal:
        run(monkeypatch, folder, model, **asked)
    assert said in str(refusal.value)
    assert "Give another --output, or --fresh to start over." in str(refusal.value)
    assert model.asked == []
    assert (folder / "out.jsonl").read_bytes() == before
    report, _ = run(monkeypatch, folder, model, fresh=True, **asked)
    assert report.kept == 0
    assert len(model.asked) == len(written(folder)) == report.made
    assert run(monkeypatch, folder, EchoModel(weights), **asked)[0].kept == report.made


def test_prompts_that_changed_under_their_names_are_refused(
    monkeypatch: Patch, folder: Path
) -> None:
    run(monkeypatch, folder, EchoModel(failing=frozenset({"t1"})))
    before = (folder / "out.jsonl").read_bytes()
    original = (folder / "in.jsonl").read_bytes()
    for changed in (
        original.replace(b"text 2", b"text two"),
        original.replace(b'"text 2"', b'"text 2", "temperature": 0.7'),
        original.replace(b'"text 2"', b"2"),
    ):
        (folder / "in.jsonl").write_bytes(changed)
        with pytest.raises(UsageError, match="the prompt or settings of t2 differ"):
            run(monkeypatch, folder)
        assert (folder / "out.jsonl").read_bytes() == before


def test_more_prompts_and_fewer_are_no_other_ones(monkeypatch: Patch, folder: Path) -> None:
    run(monkeypatch, folder)
    lines = (folder / "in.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "in.jsonl").write_bytes(b"".join([line(prompt="new", task_id="new"), *lines[2:]]))
    report, watcher = run(monkeypatch, folder)
    assert (report.kept, report.made) == (4, 1)
    assert "kept in the output: 2 lines of other prompts" in watcher.notes
    assert len(written(folder)) == 7


def test_a_file_of_somebody_elses_is_left_alone(monkeypatch: Patch, folder: Path) -> None:
    path = folder / "out.jsonl"
    path.write_text("precious\n")
    with pytest.raises(RunError, match=r"settings in out.jsonl.run.json are missing"):
        run(monkeypatch, folder)
    (folder / "out.jsonl.run.json").write_text("[]")
    with pytest.raises(RunError, match="are missing or damaged"):
        run(monkeypatch, folder)
    assert path.read_text() == "precious\n"
    path.unlink()
    path.mkdir()
    with pytest.raises(RunError, match="is not a file"):
        run(monkeypatch, folder)


def test_damage_in_the_middle_is_told(monkeypatch: Patch, folder: Path) -> None:
    run(monkeypatch, folder)
    path = folder / "out.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "{half\n", *lines[2:]]))
    with pytest.raises(RunError, match="line 2: damaged"):
        run(monkeypatch, folder)
    path.write_text("".join([lines[0], *lines]))
    with pytest.raises(RunError, match="has two lines for t0. Remove one"):
        run(monkeypatch, folder)


def test_the_prompts_are_not_written_over(monkeypatch: Patch, folder: Path) -> None:
    (folder / "out.jsonl").symlink_to(folder / "in.jsonl")
    with pytest.raises(UsageError, match="would be overwritten"):
        run(monkeypatch, folder, fresh=True)
    assert len((folder / "in.jsonl").read_bytes().splitlines()) == 6


def test_two_batches_do_not_share_a_file(monkeypatch: Patch, folder: Path) -> None:
    run(monkeypatch, folder, EchoModel(failing=frozenset({"t0", "t1"})))

    class Meanwhile(EchoModel):
        def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
            for completion in super().generate(requests):
                for fresh in (False, True):
                    with pytest.raises(RunError, match="another process is writing it"):
                        run(monkeypatch, folder, fresh=fresh)
                yield completion

    model = Meanwhile()
    run(monkeypatch, folder, model)
    assert model.asked == ["t0", "t1"]  # the file was replaced before the second
    assert len(written(folder)) == 6


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b"PK\3\4\n\xff\xfe",
            "in.jsonl: not a JSONL file (line 1: not valid JSON (Expecting",
        ),
        (b"\xff\xfe{\0", "in.jsonl: not a JSONL file (line 1: not UTF-8 (byte 0))"),
        (b"\nhello\nworld\n", "in.jsonl: not a JSONL file (line 2: not valid JSON ("),
        (b'[{"prompt": "a"}]', "in.jsonl: not a JSONL file (line 1: not a JSON object but list)"),
        (line(prompt="a", task_id="x") * 2, "line 2: has the same task_id 'x' as line 1"),
        (
            line(prompt="a", task_id="1") + line(prompt="a"),
            "line 2: has the same task_id '1' as line 1",
        ),
    ],
)
def test_a_file_that_is_doubtful_as_a_whole_is_refused(
    monkeypatch: Patch, folder: Path, content: bytes, said: str
) -> None:
    (folder / "in.jsonl").write_bytes(content)
    with pytest.raises(UsageError) as refusal:
        run(monkeypatch, folder)
    assert said in str(refusal.value)
    assert not (folder / "out.jsonl").exists()


def test_an_empty_file_gives_an_empty_file(monkeypatch: Patch, folder: Path) -> None:
    (folder / "in.jsonl").write_bytes(b"\n \n")
    report, watcher = run(monkeypatch, folder)
    assert report.prompts == 0
    assert any("contains no prompts" in note for note in watcher.notes)
    assert (folder / "out.jsonl").read_bytes() == b""


def test_fields_without_a_meaning_are_told(monkeypatch: Patch, folder: Path) -> None:
    (folder / "in.jsonl").write_bytes(line(prompt="a", max_token=4) + line(prompt="b", top_pp=1))
    _, watcher = run(monkeypatch, folder)
    assert "unknown fields are ignored: max_token, top_pp" in watcher.notes


def test_the_engine_knows_the_longest_completion(monkeypatch: Patch, folder: Path) -> None:
    (folder / "in.jsonl").write_bytes(line(prompt="a") + line(prompt="b", max_tokens=900))
    model = EchoModel()
    run(monkeypatch, folder, model, sampling=Sampling(max_tokens=20))
    assert model.options.longest == 900


@pytest.mark.slow
def test_ten_thousand_prompts_stream_in_bounded_memory(monkeypatch: Patch, folder: Path) -> None:
    """40 MB of prompts and as much of answers; continued half-way."""
    filler = "word " * 800
    with (folder / "in.jsonl").open("wb") as file:
        for number in range(10_000):
            file.write(line(prompt=f"{number} {filler}"))

    class Counting(EchoModel):
        taken = 0

        def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
            for completion in super().generate(requests):
                self.taken += 1
                yield completion

    tracemalloc.start()
    try:
        with pytest.raises(ModelError):
            run(monkeypatch, folder, Counting(break_after=5_000))
        second = Counting()
        report, _ = run(monkeypatch, folder, second)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (report.kept, report.made, second.taken) == (5_000, 5_000, 5_000)
    assert (folder / "out.jsonl").stat().st_size > 40 << 20
    assert peak < 12 << 20


@pytest.mark.parametrize(
    "options",
    [{"parallel": -1}, {"batch_mode": "off", "parallel": 4}, {"batch_mode": "on", "parallel": 1}],
)
def test_batch_modes_that_contradict_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="--parallel"):
        EngineOptions(**options)


def test_an_engine_that_cannot_batch_refuses_to(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text('{"task_id": "a", "text": "b"}\n')
    with pytest.raises(AssayError, match="--batch-mode on: the replay engine"):
        open_model(str(path), EngineOptions("on"))
    for mode in ("auto", "off"):
        assert open_model(str(path), EngineOptions(mode)).identity.engine == "replay"

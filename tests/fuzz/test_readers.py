"""Random and mutated bytes into every reader: nothing but an AssayError may come out."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.data import codec
from assay.datasets import read_sealed
from assay.datasets.catalogue import FilePlace, data_files, verify
from assay.errors import AssayError
from assay.models import open_recorded
from assay.pipeline.batch.requests import RunConfig, survey
from assay.quality.contracts.execution import load
from assay.quality.perplexity import load_text
from assay.quality.policy import load_policy
from assay.runs import (
    BatchOutput,
    BatchSettings,
    RunReader,
    RunWriter,
    compare,
    list_runs,
    open_run,
    read_tsv,
)  # fmt: skip
from assay.runs.results import parse_result, read_result
from assay.types import Completion, Decoding, Verdict
from tests.in_process import limit_seconds
from tests.quality.test_contracts import SOUND
from tests.runs.test_folder import MODEL
from tests.runs.test_reading import RESULT
from tests.test_protocol import BASE

SECONDS = 20.0
SLOWEST = 10.0  # for one file
POLICY = "gate: {cosine: 0.9}\ntiers: {mine: {perplexity_max: 7, scores: {mbpp: {pass_at_1: 1}}}}\n"
SAMPLE = {"task_id": "a/0", "sample": 0, "text": "x = [1]", "logprob": -1.5}
ANSWER = {
    "task_id": "a", "text": "t", "tokens_generated": 2, "tok_per_sec": 5.0, "inference_ms": 4.0,
    "used_gpu": False, "finish_reason": "stop", "seed": 1, "prompt_tokens": 3,
    "request_digest": "0",
}  # fmt: skip
PIECES = [
    b"[" * 5000, b"{" * 200, b'{"a":' * 3000, b"9" * 5000, b"-1", b"1e999", b"NaN", b"-Infinity",
    b"null", b"true", b'"\\ud800"', b"\\", b'"', b"\0", b"\xff", b"\xef\xbb\xbf", b"\n", b"\r",
    b"\t", b"\x1f\x8b", b"\x1f\x8b\x08", b"&a [*a]", b"!!int ''", b"!!float x", b"2001-99-99",
    b"../..", b"\x1b[2J", b":", b"- ", b"{}", b"[]", b"''", b"PAR1", b"0b_", b"\xed\xa0\x80",
]  # fmt: skip


def lines(*records: object) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def make_run(folder: Path) -> Path:
    run = open_run(folder, BASE, MODEL, fresh=True)
    run.add_completion(Completion("a", 0, "text", "stop", 1, 1, 1.0, 0, False))
    run.add_verdict(Verdict("a", 0, "fail", "timeout", groups={"base": (1, 2)}))
    run.close()
    return run.path


def read_in_run(name: str) -> Callable[[Path], object]:
    """Read a run's folder with this file replaced, as every command does that meets it."""

    def read(path: Path) -> None:
        folder = path.parent / "results"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        run = make_run(folder)
        shutil.copy(path, run / name)
        for step in (lambda: RunReader(run), lambda: RunWriter(run).close(),
                     lambda: list_runs(folder)):  # fmt: skip
            attempt(step)

    return read


def read_batch_output(path: Path) -> None:
    """Continue an answers file that holds this."""
    settings = BatchSettings(MODEL, Decoding(), 1, False)
    about = {**codec.to_json(settings), "environments": []}
    path.with_name(f"{path.name}.run.json").write_text(json.dumps(about))
    BatchOutput(path, settings, fresh=False).close()


def read_and_compare(path: Path) -> None:
    found = read_result(path)
    compare(found, parse_result(RESULT, path))


def verify_data(path: Path) -> None:
    verify(data_files.get("humaneval"), FilePlace(path, "replace it"))


READERS: dict[str, tuple[bytes, Callable[[Path], object]]] = {
    "samples.jsonl": (lines(SAMPLE, SAMPLE | {"sample": 1}), lambda path: open_recorded(str(path))),
    "results.json": (
        json.dumps({"eval": {"a/0": [SAMPLE | {"solution": "x"}]}}).encode(),
        lambda path: open_recorded(str(path)),
    ),
    "prompts.jsonl": (
        lines({"prompt": "p", "task_id": 3, "stop": ["x"], "max_tokens": 9}),
        lambda path: survey(path, RunConfig("m")),
    ),
    "result.json": (json.dumps(RESULT).encode(), read_and_compare),
    "tallies.tsv": (b"task_id\tn\tnum_passed\na\t10\t3\nb\t10\t0\n", read_tsv),
    "policy.yaml": (POLICY.encode(), load_policy),
    "contract.yaml": (json.dumps(SOUND).encode(), lambda path: load([path])),
    "HumanEval.jsonl": (lines(SAMPLE), verify_data),
    "text.txt": (b"some text\n", lambda path: load_text(str(path))),
    "entry.json": (b"00\n{}", lambda path: read_sealed(path, "x")),
    "run.json": (
        lines({"key": "k", "created": "2026", "model": codec.to_json(MODEL),
               "environments": [{}]}),
        read_in_run("run.json"),
    ),
    "protocol.json": (json.dumps(BASE.to_json()).encode(), read_in_run("protocol.json")),
    "completions.jsonl": (
        lines({**SAMPLE, "finish_reason": "stop", "prompt_tokens": 1, "tokens_generated": 1,
               "inference_ms": 1.0, "seed": 0, "used_gpu": False}),
        read_in_run("completions.jsonl"),
    ),
    "verdicts.jsonl": (
        lines({"task_id": "a", "sample": 0, "status": "pass", "reason": "passed",
               "groups": {"base": [1, 2]}}),
        read_in_run("verdicts.jsonl"),
    ),
    "answers.jsonl": (lines(ANSWER), read_batch_output),
}  # fmt: skip


def mutate(chance: random.Random, seed: bytes) -> bytes:
    """Return bytes that are nearly right, or not at all."""
    if chance.random() < 0.1:
        return chance.randbytes(chance.randrange(200))
    content = bytearray(seed)
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        at = chance.randrange(len(content) + 1)
        end = at + chance.randrange(8)
        match chance.randrange(4):
            case 0:
                content[at:end] = chance.choice(PIECES)
            case 1:
                content[at:end] = chance.randbytes(chance.randrange(4))
            case 2:
                del content[at : at + chance.randrange(len(content) + 1)]
            case 3:
                content[at:at] = content[chance.randrange(len(content) + 1) :][:200]
    mutated = bytes(content)
    if chance.random() < 0.15:
        packed = gzip.compress(mutated)
        return packed[: chance.randrange(len(packed) + 1)] if chance.random() < 0.5 else packed
    return mutated


def attempt(read: Callable[[], object]) -> bool:
    """Tell whether it was read; an AssayError of one line says why not."""
    try:
        read()
    except AssayError as error:
        assert str(error).strip()
        return False
    return True


@pytest.mark.fuzz
def test_only_errors_of_ours_come_out(tmp_path: Path) -> None:
    """The seed is printed by pytest when it fails: the same one gives the same files."""
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    count, ends = 0, time.monotonic() + SECONDS
    while time.monotonic() < ends:
        for name, (right, read) in READERS.items():
            path = tmp_path / name
            path.write_bytes(content := mutate(chance, right))
            try:
                with limit_seconds(SLOWEST):
                    attempt(lambda read=read, path=path: read(path))  # type: ignore[misc]
            except BaseException as error:
                error.add_note(f"{name}, seed {seed}: {content[:2000]!r}")
                raise
            count += 1
    assert count > len(READERS)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", READERS)
def test_what_is_right_is_read(tmp_path: Path, name: str) -> None:
    """A reader that refuses everything would survive too."""
    right, read = READERS[name]
    (tmp_path / name).write_bytes(right)
    is_other = name == "HumanEval.jsonl"  # these records are not the pinned ones
    assert attempt(lambda: read(tmp_path / name)) != is_other

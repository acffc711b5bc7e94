"""Who may call whom, as docs/architecture.md says; and that files stay small."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "assay"
EVERYBODY = {
    "",
    "types",
    "protocol",
    "errors",
    "distribution",
    "codec",
    "registry",
    "fetch",
    "scoring",
    "plain",
    "digests",
    "printable",
    "thoughts",
    "reading",
    "writing",
    "machine",
}
MAY_CALL = {
    "types": set(),
    "errors": set(),
    "cli": {"pipeline", "runs", "sandbox", "benchmarks", "models", "quality"},
    "pipeline": {
        "benchmarks",
        "prompts",
        "models",
        "extract",
        "sandbox",
        "runs",
        "selection",
        "peers",
    },
    "peers": {"benchmarks", "sandbox"},
    "quality": {"benchmarks", "models", "runs"},
    "__main__": {"cli"},
}
FILES = sorted(SOURCE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Absolute names of the assay modules a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "assay":
            for alias in node.names:
                yield f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == "assay")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_rooms_are_entered_through_the_door(path: Path) -> None:
    here = room(path)
    for name in imported(path):
        _, _, inside = name.partition(".")
        there, _, rest = inside.partition(".")
        if not (SOURCE / there).exists() and not (SOURCE / f"{there}.py").exists():
            there = ""  # a name of the package itself, such as __version__
        if there != here:
            allowed = MAY_CALL.get(here, set()) | (EVERYBODY if here != "types" else {""})
            assert there in allowed, f"{here} imports {name}"
            assert not rest.startswith("_"), f"{here} reaches into {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_fit_a_readers_head(path: Path) -> None:
    limit = 200 if path.name == "types.py" else 400
    assert len(path.read_text().splitlines()) < limit


def test_pipeline_names_no_benchmark_model_or_sandbox() -> None:
    text = "".join(path.read_text().lower() for path in (SOURCE / "pipeline").glob("*.py"))
    for name in ("humaneval", "mbpp", "gguf", "llama", "docker", "wasm"):
        assert name not in text

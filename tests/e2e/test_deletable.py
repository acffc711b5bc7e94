"""Parts that few users need can be deleted with their folder: all else imports and has its help."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "assay"
# Of each part, everything that is deleted, below src/assay.
PARTS = {
    "vllm": ("models/engines/vllm",),
    "torch": ("models/engines/torch",),
    "openai": ("models/engines/openai",),
    "apr_cli": ("models/engines/apr_cli",),
    "replay": ("models/engines/replay",),
    "apr": (
        "formats/apr", "formats/kinds/apr.py", "models/engines/apr_files.py",
        "quality/check/apr.py",
    ),
    "wasm": ("sandbox/wasm", "sandbox/kinds/wasm.py"),
    "ray": ("cluster",),
    "fusion": ("serve/fusion",),
}  # fmt: skip
# Write what could not be imported from every folder, and its help text. The folders are imported by
# children of one process, which have the libraries of others loaded already and nothing of assay.
# Extras count as missing: they are slow to load.
IMPORT_ALL = r"""
import contextlib, gc, importlib, io, json, os, pkgutil, sys

SLOW = {"llama_cpp", "ray", "torch", "transformers", "triton", "vllm", "wasmtime", "xllamacpp"}


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in SLOW:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def import_all(folder):
    sys.path.insert(0, folder)
    import assay.cli

    assert assay.__path__ == [os.path.join(folder, "assay")]
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assay.cli.cli.main(["--help"], "assay", standalone_mode=False)
    failures = {}
    for module in pkgutil.walk_packages(assay.__path__, "assay."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError as error:
                failures[module.name] = str(error)
    return {"failures": failures, "help": output.getvalue()}


def write(number, outcome):
    with open(f"{number}.json", "w") as file:
        json.dump(outcome, file)


gc.disable()
sys.meta_path.insert(0, Missing())
whole, *others = sys.argv[1:]
write(0, import_all(whole))
sys.path.remove(whole)
for name in [name for name in sys.modules if name.partition(".")[0] == "assay"]:
    del sys.modules[name]
children = []
for number, folder in enumerate(others, 1):
    children.append(os.fork())
    if not children[-1]:
        write(number, import_all(folder))
        os._exit(0)
for child in children:
    os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def imports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what happened without each part. Of "whole", nothing is deleted."""
    folder = tmp_path_factory.mktemp("without")
    for name, paths in PARTS.items():
        # With compiled modules, which are valid as long as their sources have the same times.
        shutil.copytree(PACKAGE, folder / name / "assay")
        for path in paths:
            deleted = folder / name / "assay" / path
            deleted.unlink() if deleted.is_file() else shutil.rmtree(deleted)
    folders = [PACKAGE.parent, *(folder / name for name in PARTS)]
    done = subprocess.run(
        [sys.executable, "-P", "-c", IMPORT_ALL, *map(str, folders)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
    )
    files = [folder / f"{number}.json" for number in range(len(folders))]
    outcomes = {
        name: json.loads(file.read_text()) if file.is_file() else {}
        for name, file in zip(("whole", *PARTS), files, strict=True)
    }
    assert outcomes["whole"], done.stderr
    return {**outcomes, "stderr": done.stderr}


@pytest.mark.parametrize("part", PARTS)
def test_everything_else_imports_and_the_help_is_the_same(
    part: str, imports: dict[str, Any]
) -> None:
    whole, without = imports["whole"], imports[part]
    assert without, imports["stderr"]
    assert without["failures"].items() <= whole["failures"].items()
    assert without["help"] == whole["help"]
    assert "Usage: assay" in without["help"]


def test_only_modules_of_extras_or_of_the_sandbox_cannot_be_imported(
    imports: dict[str, Any],
) -> None:
    places = (
        "assay.models.engines.", "assay.cluster.", "assay.sandbox.wasm.", "assay.peers._confined.",
    )  # fmt: skip
    failures = imports["whole"]["failures"]
    assert [name for name in failures if not name.startswith(places)] == []

"""Numbers in model files that no model has: one line before anything is loaded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ModelError
from assay.formats.config import ModelConfig, check_sizes
from assay.models import EngineOptions, open_model
from tests.formats.damaged import setting, write_bases

GB = 1 << 30
LLAMA_70B = {
    "num_hidden_layers": 80, "hidden_size": 8192, "intermediate_size": 28672,
    "vocab_size": 128256, "max_position_embeddings": 131072,
}  # fmt: skip


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bases")
    write_bases(folder)
    return folder


@pytest.mark.torch
@pytest.mark.parametrize(
    "changes",
    [
        {"num_hidden_layers": 10**9},  # transformers builds them until the memory is full
        {"vocab_size": 10**12},
        {"hidden_size": 10**12},
        {"intermediate_size": 1 << 62},
        {"max_position_embeddings": 10**400},
        {"num_hidden_layers": -1},
        {"hidden_size": "256"},
        {"vocab_size": 1e30},
        {"text_config": {"num_hidden_layers": 10**9}},
    ],
    ids=str,
)
def test_a_folders_configuration(bases: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    """These must be refused before transformers reads them in the engine's process."""
    pytest.importorskip("torch", reason="needs torch: pip install 'assay-eval[hf]'")
    folder = tmp_path / "folder"
    shutil.copytree(bases / "folder", folder)
    config = json.loads((folder / "config.json").read_text())
    open_model(str(folder), EngineOptions())  # sound before
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    with pytest.raises(ModelError, match=r"config\.json: .*which does not fit its weights"):
        open_model(str(folder), EngineOptions())


@pytest.mark.torch
@pytest.mark.parametrize("content", ["", "[" * 100_000, "[]", "{", '{"a": ' + "9" * 5000 + "}"])
def test_a_configuration_that_is_none(bases: Path, tmp_path: Path, content: str) -> None:
    pytest.importorskip("torch", reason="needs torch: pip install 'assay-eval[hf]'")
    folder = tmp_path / "folder"
    shutil.copytree(bases / "folder", folder)
    (folder / "config.json").write_text(content)
    with pytest.raises(ModelError, match=r"config\.json: .*Download it again\.$"):
        open_model(str(folder), EngineOptions())


@pytest.mark.parametrize("length", [0, -1, -(1 << 31)])
def test_a_gguf_files_context(bases: Path, tmp_path: Path, length: int) -> None:
    """A length of 0 that is not refused is a ZeroDivisionError, a traceback."""
    pytest.importorskip("xllamacpp", reason="needs llama.cpp: pip install 'assay-eval[gguf]'")
    path = tmp_path / "m.gguf"
    shutil.copyfile(bases / "gguf", path)
    setting("llama.context_length", "<Ii", 5, length)(path)
    with pytest.raises(ModelError, match="its context length is"):
        open_model(str(path), EngineOptions())


@pytest.mark.parametrize("size", [140 * GB, 40 * GB, 18 * GB])  # bfloat16, 4 bits, 2 bits
def test_real_models_pass(size: int) -> None:
    check_sizes(ModelConfig(LLAMA_70B), size, "config.json")
    check_sizes(ModelConfig({"text_config": LLAMA_70B, "hidden_size": None}), size, "config.json")

"""Names of models: one spelling for all commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.datasets import packaged_file
from assay.errors import ModelError
from assay.models import DEFAULT_WEIGHTS, ModelReference, parse_reference
from assay.quality.check.with_engine import open_engine
from tests.models.small_models import write_small


@pytest.mark.parametrize(
    ("spec", "engine", "reference"),
    [
        ("model.gguf", "", "model.gguf"),
        ("hf:model.gguf", "hf", "model.gguf"),
        ("openai:org/model:free", "openai", "org/model:free"),
        ("C:/model.gguf", "", "C:/model.gguf"),  # no engine is called C
    ],
)
def test_an_engine_may_be_named(spec: str, engine: str, reference: str) -> None:
    found = parse_reference(spec)
    assert found == ModelReference(engine, reference)
    assert str(found) == spec


def test_the_default_model_is_a_file() -> None:
    assert parse_reference("default").path == packaged_file(DEFAULT_WEIGHTS)


def test_a_path_is_that_of_a_file_or_folder(tmp_path: Path) -> None:
    assert parse_reference(f"hf:{tmp_path}").path == tmp_path
    with pytest.raises(ModelError, match="openai:gpt: is not on this machine"):
        _ = parse_reference("openai:gpt").path


@pytest.mark.torch
def test_a_check_runs_the_engine_that_is_named(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs the hf extra")
    path = write_small(tmp_path / "small.gguf", ("Q4_K",))
    assert open_engine(ModelReference("hf", str(path))).identity.engine == "hf"

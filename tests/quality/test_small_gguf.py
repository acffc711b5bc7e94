"""Perplexity and qa of a small GGUF model: random weights in llama.cpp, and no torch."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.models.small_models import write_small

pytest.importorskip("xllamacpp", reason="needs llama.cpp: pip install 'assay-eval[gguf]'")

TEXT = "hello world, hello 12. A text that nobody has learnt.\n" * 4
TIER = "{check: true, perplexity_max: 50, text: built-in, text_bytes: 400, parity: false}"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_small(tmp_path / "small.gguf")


def test_perplexity_is_that_of_random_weights(assay: Cli, small: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text(TEXT)
    done = assay("perplexity", small, "--dataset", "mine.txt", "--window", "64", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["model"]["engine"] == "gguf"
    assert found["results"]["tokens"] > 50
    assert found["results"]["perplexity"] > 50
    assert math.log(found["results"]["perplexity"]) == pytest.approx(
        found["results"]["cross_entropy"]
    )


def test_qa_does_not_let_an_untrained_model_pass(assay: Cli, small: Path, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(f"tiers:\n  mine: {TIER}\n")
    done = assay("qa", small, "--tier", "mine", "--policy", "policy.yaml", "--json")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["decision"] == "NO-GO"
    decisions = {item["name"]: item["decision"] for item in found["items"]}
    assert decisions == {"check": "GO", "perplexity": "NO-GO"}

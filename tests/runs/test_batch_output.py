"""Which output of ``assay run`` is continued."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from assay.errors import RunError
from assay.runs.batch_output import BatchLine, BatchOutput, BatchSettings
from assay.types import Decoding, ModelIdentity

MODEL = ModelIdentity("model", "gguf", "w", "chat", path="/models/model.gguf")
SETTINGS = BatchSettings(MODEL, Decoding(), 1, chat=False)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    path = tmp_path / "out.jsonl"
    begun = BatchOutput(path, SETTINGS, fresh=False)
    begun.append(BatchLine("a", "text", 1, 1.0, 1.0, False, "stop", 0, 1, "digest"))
    begun.close()
    return path


def resume(output: Path, settings: BatchSettings) -> dict[str, str]:
    """Return the lines that are done, by their task. An output that starts over has none."""
    resumed = BatchOutput(output, settings, fresh=False)
    resumed.close()
    return resumed.done


def test_a_model_that_moved_or_has_another_name_continues(output: Path) -> None:
    """Digests identify a model. Its path and name are not settings."""
    moved = replace(MODEL, name="model 135M", path="/other/model.gguf")
    assert resume(output, replace(SETTINGS, model=moved)) == {"a": "digest"}


def test_an_output_of_an_earlier_version_continues(output: Path) -> None:
    about = output.with_name("out.jsonl.run.json")
    content = json.loads(about.read_text())
    del content["model"]["path"], content["thinking"], content["engine_options"]
    about.write_text(json.dumps(content))
    assert resume(output, SETTINGS) == {"a": "digest"}


def test_other_weights_do_not_continue(output: Path) -> None:
    other = replace(SETTINGS, model=replace(MODEL, weights_sha256="v"))
    with pytest.raises(RunError, match=r"model\.weights_sha256 was w, is v"):
        BatchOutput(output, other, fresh=False)

"""``assay compare-hf`` and ``assay qa`` on real models, sound and damaged."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from assay.datasets import packaged_file
from assay.formats.format import bits_per_weight, precision
from assay.formats.gguf.file import read_header
from assay.models import DEFAULT_WEIGHTS
from tests.conftest import Cli
from tests.models.torch_models import save_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers", reason="needs the hf extra")
    return save_model(tmp_path_factory.mktemp("parity") / "model")


@pytest.fixture(scope="module")
def original() -> Path:
    return packaged_file(DEFAULT_WEIGHTS)


@pytest.fixture(scope="module")
def damaged(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One layer's weights shuffled: every block is still a block, no number is out of range."""
    np = pytest.importorskip("numpy")
    layer = next(t for t in read_header(original).tensors if t.name == "blk.5.ffn_down.weight")
    content = np.fromfile(original, np.uint8)
    block = 20  # bytes, of Q4_1
    blocks = content[layer.start : layer.start + layer.size].reshape(-1, block)
    np.random.default_rng(0).shuffle(blocks)
    path = tmp_path_factory.mktemp("damaged") / "shuffled.gguf"
    content.tofile(path)
    return path


@pytest.mark.torch
def test_a_folder_is_like_itself(assay: Cli, folder: Path, tmp_path: Path) -> None:
    done = assay("compare-hf", folder, "--prompts", "3", "--plot", "kl.svg", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["decision"] == "GO"
    assert told["precision"] == "same"
    assert told["token_differences"] == []
    assert told["agreement"]["cosine_min"] == pytest.approx(1.0)
    assert told["agreement"]["top1_agreement"] == 1.0
    assert told["divergence"] == {"same": 3, "of": 3, "positions": [None, None, None]}
    assert told["perplexity_gap"] == pytest.approx(0.0, abs=1e-6)
    assert len(told["kl_by_position"]) > 10
    assert ET.parse(tmp_path / "kl.svg").getroot().tag.endswith("svg")


@pytest.mark.torch
def test_another_model_of_the_same_shape_is_not(assay: Cli, folder: Path, tmp_path: Path) -> None:
    other = save_model(tmp_path / "other", seed=3)
    done = assay("compare-hf", other, "--hf", folder, "--prompts", "2")
    assert done.returncode == 1
    assert "NO-GO   mean cosine of logits" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("NO-GO by the thresholds for same")


@pytest.mark.torch
def test_other_tokens_for_the_same_prompt_are_told(
    assay: Cli, folder: Path, tmp_path: Path
) -> None:
    """The same weights, but a template that says something more."""
    other = save_model(tmp_path / "other", template="Sir! {{ messages[0]['content'] }}")
    told = json.loads(assay("compare-hf", other, "--hf", folder, "--prompts", "2", "--json").stdout)
    assert told["agreement"]["cosine_min"] == pytest.approx(1.0)
    assert len(told["token_differences"]) == 2
    assert told["token_differences"][0]["position"] == 0
    assert told["decision"] == "NO-GO"


@pytest.mark.torch
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.gguf",), "nowhere.gguf: is not on this machine"),
        (("FOLDER", "--precision", "2-bit"), "no thresholds for 2-bit. Choose same, 8-bit, 4-bit"),
        (("FOLDER", "--hf", "nowhere"), "nowhere: is not a file or folder"),
        (("FOLDER", "--policy", "nowhere.yaml"), "no such file"),
    ],
)
def test_bad_input_is_one_line(
    assay: Cli, folder: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = assay("compare-hf", *(str(folder) if a == "FOLDER" else a for a in arguments))
    assert done.returncode == 2
    assert words in done.stderr.splitlines()[-1]


@pytest.mark.torch
@pytest.mark.model
def test_precision_is_that_of_most_weights(original: Path, folder: Path) -> None:
    assert bits_per_weight(original) == 5.0
    assert precision(original) == "4-bit"
    assert precision(folder) == "same"


@pytest.mark.torch
@pytest.mark.model
@pytest.mark.whole
def test_the_default_model_in_both_engines(assay: Cli, original: Path) -> None:
    pytest.importorskip("transformers", reason="needs the hf extra")
    done = assay("compare-hf", original, "--prompts", "3", "--bytes", "2000", "--json")
    told = json.loads(done.stdout)
    assert told["decision"] == "GO", told["findings"]
    assert told["precision"] == "4-bit"
    assert told["token_differences"] == []
    assert told["agreement"]["cosine_mean"] > 0.99
    assert abs(told["perplexity_gap"]) < 0.03


@pytest.mark.torch
@pytest.mark.model
@pytest.mark.whole
def test_shuffled_weights_fail_parity(assay: Cli, original: Path, damaged: Path) -> None:
    pytest.importorskip("transformers", reason="needs the hf extra")
    reference = f"hf:{original}"
    done = assay(
        "compare-hf", damaged, "--hf", reference, "--prompts", "2", "--bytes", "1500", "--json"
    )
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["token_differences"] == []
    assert told["agreement"]["cosine_mean"] < 0.98
    assert told["perplexity_gap"] > 0.05


@pytest.mark.torch
@pytest.mark.model
@pytest.mark.whole
def test_shuffled_weights_fail_qa(assay: Cli, original: Path, damaged: Path) -> None:
    pytest.importorskip("transformers", reason="needs the hf extra")
    done = assay("qa", damaged, "--hf", f"hf:{original}", "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    by_name = {item["name"]: item for item in told["items"]}
    assert told["decision"] == "NO-GO"
    assert by_name["check"]["decision"] == "GO"  # the file itself is sound
    assert by_name["parity"]["decision"] == "NO-GO"
    assert "mean cosine of logits" in by_name["parity"]["reason"]

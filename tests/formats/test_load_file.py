"""Model files in torch: every weight is read once, and nothing is drawn at random before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.models.options import EngineOptions

pytest.importorskip("torch", reason="needs the hf extra: pip install 'assay-eval[hf]'")
pytest.importorskip("transformers", reason="needs the hf extra: pip install 'assay-eval[hf]'")

import torch

from assay.datasets import packaged_file
from assay.formats import tensors
from assay.formats.format import read_checkpoint
from assay.models import DEFAULT_WEIGHTS, convert
from assay.models.engines.torch.load import DTYPES, load
from assay.models.engines.torch.torch_model import TorchSettings
from assay.models.engines.torch.weights import read_weights
from tests.models.small_models import write_small
from tests.models.torch_models import save_model

pytestmark = pytest.mark.torch

MIXED = ("Q4_1", "Q8_0", "Q6_K", "F16", "BF16", "F32")
TEXT = "hello world 12"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("model") / "small.gguf", MIXED)


def one_by_one(path: Path, dtype: str) -> Any:
    """The plain way: a model with random weights, then a copy over each of them."""
    from transformers import AutoConfig, AutoModelForCausalLM

    checkpoint = read_checkpoint(path)
    config = AutoConfig.for_model(**checkpoint.config.content)
    model = AutoModelForCausalLM.from_config(config, dtype=DTYPES[dtype]).eval()
    weights = model.state_dict()
    for weight in checkpoint.tensors():
        weights[weight.name].copy_(weight.torch())
    return model


def logits(model: Any, tokens: list[int]) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(torch.tensor([tokens])).logits
    return found


def assert_same_model(one: Any, other: Any, tokens: list[int]) -> None:
    ours, theirs = (
        dict([*model.named_parameters(), *model.named_buffers()]) for model in (one, other)
    )
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert tensor.dtype == theirs[name].dtype, name
        assert torch.equal(tensor, theirs[name]), name
    assert torch.equal(logits(one, tokens), logits(other, tokens))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weights_buffers_and_logits_are_those_of_a_copy_one_by_one(
    file: Path, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensors, "PIECE", 1 << 12)  # many parts, of small matrices too
    loaded = load(TorchSettings(str(file), EngineOptions(device="cpu", dtype=dtype)))
    assert loaded.dtype == dtype
    assert_same_model(loaded.model, one_by_one(file, dtype), loaded.tokenizer.encode(TEXT))
    assert loaded.model.lm_head.weight is loaded.model.model.embed_tokens.weight
    assert not loaded.model.training


def test_nothing_is_drawn_at_random(file: Path) -> None:
    before = torch.get_rng_state()
    load(TorchSettings(str(file), EngineOptions(device="cpu", dtype="float32")))
    assert torch.equal(before, torch.get_rng_state())


def test_torch_computes_with_as_many_threads_afterwards(file: Path) -> None:
    before = torch.get_num_threads()
    load(TorchSettings(str(file), EngineOptions(device="cpu", dtype="float32")))
    assert torch.get_num_threads() == before


def test_a_weight_too_few_too_many_or_in_another_shape_is_named(file: Path) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    checkpoint = read_checkpoint(file)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**checkpoint.config.content))
    stored = checkpoint.hf_tensors()
    norm = next(tensor for tensor in stored if tensor.name == "model.norm.weight")
    others = [tensor for tensor in stored if tensor is not norm]
    other_shape = tensors.Tensor(norm.name, norm.encoding, (1,), 4, lambda: bytes(4))
    other_name = tensors.Tensor("model.more.weight", "F32", (1,), 4, lambda: bytes(4))
    for wrong, words in (
        (others, "the file lacks the weight model.norm.weight"),
        ([*stored, other_name], "transformers' llama has no weight model.more.weight"),
        (
            [*others, other_shape],
            r"model.norm.weight has the shape \(1,\), the model needs \(256,\)",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            read_weights(wrong, model)


def test_frequencies_that_old_files_store_are_computed(file: Path) -> None:
    """The model has no weight of that name, which must not keep the file from being loaded."""
    from transformers import AutoConfig, AutoModelForCausalLM

    checkpoint = read_checkpoint(file)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**checkpoint.config.content))
    name = "model.layers.0.self_attn.rotary_emb.inv_freq"
    stored = tensors.Tensor(name, "F32", (1,), 4, lambda: bytes(4))
    assert name not in read_weights([*checkpoint.hf_tensors(), stored], model)


def test_a_head_of_its_own_is_not_tied(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "folder")
    convert(folder, tmp_path / "model.apr")
    paths = (tmp_path / "model.apr", folder)
    ours, theirs = (
        load(TorchSettings(str(path), EngineOptions(device="cpu", dtype="float32")))
        for path in paths
    )
    assert ours.model.lm_head.weight is not ours.model.model.embed_tokens.weight
    assert_same_model(ours.model, theirs.model, theirs.tokenizer.encode(TEXT))


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_default_model_is_the_folder_made_of_it(tmp_path: Path, dtype: str) -> None:
    path = packaged_file(DEFAULT_WEIGHTS)
    convert(path, tmp_path / "folder")
    loaded, folder = (
        load(TorchSettings(str(one), EngineOptions(device="cpu", dtype=dtype)))
        for one in (path, tmp_path / "folder")
    )
    tokens = loaded.tokenizer.encode(TEXT)
    assert tokens == folder.tokenizer.encode(TEXT)
    assert_same_model(loaded.model, folder.model, tokens)
    assert_same_model(loaded.model, one_by_one(path, dtype), tokens)

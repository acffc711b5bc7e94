"""Blocks dequantised by torch are, bit by bit, those of the gguf package."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs the hf extra: pip install 'assay-eval[hf]'")
pytest.importorskip("gguf", reason="needs the hf extra: pip install 'assay-eval[hf]'")

import numpy as np
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

from assay.formats.tensors import BLOCKS, Tensor, decode
from assay.models.engines.torch.weights import FORMATS, dequantise_on

pytestmark = pytest.mark.torch

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
    ),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("encoding", FORMATS)
def test_torch_dequantises_as_the_gguf_package(encoding: str, device: str) -> None:
    values, size = BLOCKS[encoding]
    stored = np.random.default_rng(0).integers(0, 256, (999, size), dtype=np.uint8)
    with np.errstate(all="ignore"):  # random scales can be infinite
        expected = dequantize(stored.reshape(1, -1), GGMLQuantizationType[encoding])
    found = FORMATS[encoding](torch.from_numpy(stored).to(device)).cpu().numpy()
    assert found.shape == (999, values)
    assert np.array_equal(found.reshape(1, -1), expected, equal_nan=True)
    signs = np.signbit(found.reshape(1, -1)) == np.signbit(expected)
    assert np.all(signs | np.isnan(expected))


@pytest.mark.parametrize("device", DEVICES)
def test_a_tensor_has_its_shape(device: str) -> None:
    stored = np.random.default_rng(1).integers(0, 256, (6, 144), dtype=np.uint8)
    tensor = Tensor("weight", "Q4_K", (3, 512), stored.nbytes, lambda: stored.reshape(-1).data)
    found = dequantise_on(tensor, device).cpu().numpy()
    assert np.array_equal(found, decode(tensor).values, equal_nan=True)

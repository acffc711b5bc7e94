"""What the hf engine does differently on a GPU; only where there is one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the hf extra: pip install 'assay-eval[hf]'")
pytest.importorskip("transformers", reason="needs the hf extra: pip install 'assay-eval[hf]'")

import torch

from assay.models import EngineOptions, open_model
from assay.models.engines.torch.fused import fuse, has_kernel, log_sum_exp, over_past
from assay.models.engines.torch.load import load
from assay.models.engines.torch.slots import PromptReader, Slots, choice_for
from assay.models.engines.torch.torch_model import TorchSettings
from assay.types import Decoding, Prompt, Request

from .small_models import write_small
from .torch_models import save_model

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize(
    ("heads", "shared", "width", "window"), [(9, 3, 64, 0), (8, 8, 128, 0), (14, 2, 80, 50)]
)
def test_the_kernel_attends_as_torch_does(heads: int, shared: int, width: int, window: int) -> None:
    assert has_kernel()
    torch.manual_seed(0)
    rows, length, scale = 7, 700, width**-0.5
    query = torch.randn(rows, heads, 1, width, device="cuda", dtype=torch.bfloat16)
    keys, values = torch.randn(2, rows, shared, length, width, device="cuda", dtype=torch.bfloat16)
    position = torch.tensor([0, 1, 63, 64, 65, 300, 699], device="cuda")
    found = over_past(query, keys, values, position, length, scale, window)
    query, keys, values = (tensor.float().cpu() for tensor in (query, keys, values))
    expected = over_past(query, keys, values, position.cpu(), length, scale, window)
    assert (found.float().cpu() - expected).abs().max() < 0.02


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_fused_kernels_compute_what_transformers_does(folder: Path, dtype: str) -> None:
    with torch.no_grad():
        model = load(TorchSettings(str(folder), EngineOptions(device="cuda", dtype=dtype))).model
        ids = torch.arange(120, device="cuda").reshape(4, 30) % model.config.vocab_size
        wanted = model(ids).logits.double()
        fuse(model)
        norms = [m for m in model.modules() if type(m).__name__.endswith("RMSNorm")]
        assert norms
        # In float32 the order of the sum would show.
        assert all(("forward" in vars(norm)) == (dtype != "float32") for norm in norms)
        attention = sys.modules[type(model).__module__]
        assert attention.apply_rotary_pos_emb.__module__ == "assay.models.engines.torch.fused"
        found = model(ids).logits.double()
    nearness = torch.nn.functional.cosine_similarity(found, wanted, dim=-1)
    assert nearness.min() > (0.9999 if dtype == "bfloat16" else 0.9999999)


def test_a_norm_of_another_kind_stays(folder: Path) -> None:
    class OtherRMSNorm(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.rand(64))
            self.variance_epsilon = 1e-6

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (1 + self.weight) * torch.nn.functional.rms_norm(x, (64,))

    with torch.no_grad():
        model = load(
            TorchSettings(str(folder), EngineOptions(device="cuda", dtype="bfloat16"))
        ).model
        model.other = OtherRMSNorm().to(model.device, model.dtype)
        fuse(model)
    assert "forward" not in vars(model.other)


def test_the_kernel_sums_as_torch_does() -> None:
    logits = torch.randn(5, 50_001, device="cuda", dtype=torch.bfloat16) * 8
    logits[0, 7], logits[1, :-1] = float("-inf"), float("-inf")
    wanted = torch.logsumexp(logits.float(), dim=-1)
    assert torch.allclose(log_sum_exp(logits), wanted, rtol=1e-5)


def test_graphs_make_the_tokens_of_plain_steps(folder: Path) -> None:
    with torch.no_grad():
        reader = PromptReader(
            load(TorchSettings(str(folder), EngineOptions(device="cuda", dtype="bfloat16"))).model,
            0,
        )
        prompts = reader.read([[1, 2, 3], [4, 5, 6, 7, 8, 9], [10]])
        wishes = [
            Decoding(30, 0.8, 20, min_p=0.05, seed=7),
            Decoding(30, repetition_penalty=1.2),
            Decoding(5, 1.0, 20, 0.9, seed=8),
        ]
        made = []
        for graphs in (True, False):
            slots = Slots(reader, prompts[0], 3, 128, 30, [])
            slots.uses_graphs = graphs
            slots.place([(prompt, [wish]) for prompt, wish in zip(prompts, wishes, strict=True)])
            slots.advance(40, choice_for(wishes))
            made.append(slots.tokens(range(3)))
        assert made[0] == made[1]
        assert [len(tokens) for tokens in made[0]] == [30, 30, 5]


def test_a_gpu_is_used_and_said_to_be(folder: Path) -> None:
    model = open_model(str(folder), EngineOptions(prompt_form="text"))
    asked = [Request("t", s, Prompt(text="def f(x):"), Decoding(20, 0.8, 40), s) for s in range(40)]
    made = list(model.generate(asked))
    assert all(c.used_gpu and c.error is None for c in made)
    assert model.identity.variant == "bfloat16"
    assert model.describe().to_json()["batch_invariant"] is False
    assert len({c.text for c in made}) > 20


def test_memory_of_the_gpu_is_told(folder: Path) -> None:
    model = open_model(str(folder), EngineOptions(parallel=4, device="cuda"))
    asked = [
        Request(f"t/{n}", 0, Prompt(text="x" * (n + 3)), Decoding(max_tokens=n + 1), 0)
        for n in range(12)
    ]
    with model.keep_loaded():
        made = {c.task_id: c.tokens_generated for c in model.generate(asked)}
        usage = model.usage()
    # Steps come eight at a time, and none is made beyond what was asked for.
    assert all(made[f"t/{n}"] <= n + 1 for n in range(12))
    assert made["t/0"] == 1
    assert usage is not None
    assert usage.gpu_peak_mb is not None
    assert usage.gpu_peak_mb > 1


def test_a_file_is_dequantised_on_the_gpu_to_the_weights_of_the_cpu(tmp_path: Path) -> None:
    file = str(write_small(tmp_path / "small.gguf", ("Q4_1", "Q8_0", "Q6_K", "F16", "BF16", "F32")))
    there, here = (
        load(TorchSettings(file, EngineOptions(device=device, dtype="bfloat16"))).model
        for device in ("cuda", "cpu")
    )
    expected = dict([*here.named_parameters(), *here.named_buffers()])
    for name, tensor in [*there.named_parameters(), *there.named_buffers()]:
        assert tensor.device.type == "cuda", name
        assert torch.equal(tensor.cpu(), expected[name]), name

"""Load a model and its tokenizer into torch, in any format, and score tokens with it."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedTokenizerFast,
)

from assay.formats.format import read_checkpoint
from assay.models.engines.torch.torch_model import TorchFacts, TorchSettings
from assay.models.engines.torch.weights import read_weights
from assay.models.options import EngineOptions, by_name
from assay.work.machine import usable_cores

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


# Tokens that end an answer in some family. Models do not always declare all of theirs.
TURN_ENDS = (
    "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "<end_of_turn>", "<|end|>",
    "</s>", "<|EOT|>", "<|return|>",
)  # fmt: skip
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
AT_ONCE = {"cpu": 1, "cuda": 16}  # sequences in one pass; a CPU is as fast with one


@dataclass(frozen=True, slots=True)
class Loaded:
    model: Any
    tokenizer: Any
    ends: tuple[int, ...]
    context: int
    device: str
    dtype: str

    def facts(self) -> TorchFacts:
        """Return the facts that a result must record about how the model runs."""
        return TorchFacts(
            transformers=transformers.__version__,
            torch=str(torch.__version__),
            device=torch.cuda.get_device_name() if self.device == "cuda" else "cpu",
            dtype=self.dtype,
            threads=torch.get_num_threads() if self.device == "cpu" else None,
        )


def set_threads(count: int) -> None:
    """Compute with so many threads on a CPU. 0 means torch's choice within the usable cores."""
    torch.set_num_threads(count or min(torch.get_num_threads(), usable_cores()))


def load(settings: TorchSettings) -> Loaded:
    """Load a folder, or a file that ``read_checkpoint`` reads."""
    device, adapter = settings.options.device, settings.options.adapter
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("torch finds no GPU. Use --device cpu, or install torch for this GPU.")
    read = _from_folder if Path(settings.path).is_dir() else _from_file
    model, tokenizer = read(settings)
    if adapter:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, adapter).merge_and_unload()
    model.eval()
    return Loaded(
        model,
        tokenizer,
        _ends(model, tokenizer),
        int(getattr(model.config.get_text_config(), "max_position_embeddings", 2048)),
        device,
        str(model.dtype).removeprefix("torch."),
    )


def _from_folder(settings: TorchSettings) -> tuple[Any, Any]:
    path, device, dtype = settings.path, settings.options.device, DTYPES[settings.options.dtype]
    config = AutoConfig.from_pretrained(path)
    _override(config, settings.options)
    if getattr(config, "quantization_config", None):
        # bitsandbytes, GPTQ, AWQ: their own loaders choose number formats.
        model = AutoModelForCausalLM.from_pretrained(path, config=config, device_map={"": device})
    else:
        model = AutoModelForCausalLM.from_pretrained(path, config=config, dtype=dtype).to(device)
    return model, AutoTokenizer.from_pretrained(path)


def _override(config: Any, options: EngineOptions) -> None:
    """Change settings that the configuration has. Raise ValueError for others."""
    for name, value in by_name(options.own_options).items():
        if name.startswith("_") or name not in config.to_dict():
            raise ValueError(
                f"--engine-option {name}: the configuration of the model has no such setting. "
                "Use a name of its config.json."
            )
        setattr(config, name, value)


def _from_file(settings: TorchSettings) -> tuple[Any, Any]:
    device, dtype = settings.options.device, DTYPES[settings.options.dtype]
    checkpoint = read_checkpoint(Path(settings.path))
    config = AutoConfig.for_model(**checkpoint.config.content)
    _override(config, settings.options)
    with torch.device("meta"):  # shapes without numbers
        empty = AutoModelForCausalLM.from_config(config, dtype=dtype)
    weights = read_weights(checkpoint.hf_tensors(), empty, device)
    # As for a folder: tie tied weights, and compute buffers that no file has.
    model = type(empty).from_pretrained(
        None, config=config, state_dict=weights, dtype=dtype, device_map={"": device}
    )
    model.generation_config = GenerationConfig(**checkpoint.generation_config.content)
    with tempfile.TemporaryDirectory() as folder:
        for name, file in (
            ("tokenizer.json", checkpoint.tokenizer_json),
            ("tokenizer_config.json", checkpoint.tokenizer_config),
        ):
            Path(folder, name).write_text(json.dumps(file.content))
        return model, PreTrainedTokenizerFast.from_pretrained(folder)


def _ends(model: Any, tokenizer: Any) -> tuple[int, ...]:
    declared = model.generation_config.eos_token_id
    tokens = set(declared if isinstance(declared, list) else [declared])
    known = tokenizer.get_added_vocab()
    # In templates with channels, this ends one channel: the thoughts.
    ends = set(TURN_ENDS) - ({"<|end|>"} if "<|channel|>" in known else set())
    tokens |= {tokenizer.eos_token_id, *(known[text] for text in ends if text in known)}
    return tuple(sorted(token for token in tokens if token is not None))


class TorchScores:
    """Scores by the attention that the model had when this was created: transformers' own."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._attention = loaded.model.config._attn_implementation

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        tokenizer = self._loaded.tokenizer
        tokens: list[int] = tokenizer.encode(
            text, add_special_tokens=True, split_special_tokens=not special
        )
        return tokens

    def bytes_of(self, token: int) -> int:
        text: str = self._loaded.tokenizer.decode(
            [token], skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return len(text.encode())

    def logits(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        logits: NDArray[np.float32] = (
            self._compute_logits([list(tokens)], 0)[0].float().cpu().numpy()
        )
        return logits

    def logprobs(self, sequences: Sequence[Sequence[int]], last: int) -> list[list[float]]:
        """Return log-probabilities. Sequences of equal length are computed together."""
        if len({len(tokens) for tokens in sequences}) > 1:
            return [self.logprobs([tokens], last)[0] for tokens in sequences]
        logits = self._compute_logits(sequences, last + 1)[:, :-1]
        wanted = torch.tensor([tokens[-last:] for tokens in sequences], device=logits.device)
        rows = [
            row.float().log_softmax(-1).gather(-1, token[:, None])[:, 0].cpu()
            for row, token in zip(logits, wanted, strict=True)
        ]
        return [row.double().tolist() for row in rows]

    def _compute_logits(self, sequences: Sequence[Sequence[int]], last: int) -> Any:
        model = self._loaded.model
        tokens = torch.tensor(sequences, device=self._loaded.device)
        generating = model.config._attn_implementation  # the slots' own, if there are any
        model.set_attn_implementation(self._attention)
        try:
            return model(tokens, logits_to_keep=last, use_cache=False).logits
        finally:
            model.set_attn_implementation(generating)

"""Represent a model as data, in any format: settings, tokenizer, weights one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.formats.architectures import Rotary, with_rotary
from assay.formats.config import JsonFile, ModelConfig, TokenizerConfig
from assay.formats.gguf.file import GgufPair
from assay.formats.rope import FREQUENCIES
from assay.formats.tensors import Tensor, Weight, decode
from assay.formats.tokenizer_json import TokenizerJson

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything that transformers and tokenizers need. Weights are read on demand.

    ``stored`` returns the tensors as the file has them, under Hugging Face's names but in the
    file's rotary order and encodings. ``gguf`` is the metadata of the original GGUF file, if any.
    """

    config: ModelConfig
    generation_config: JsonFile  # eos_token_id: all tokens that end an answer
    tokenizer_json: TokenizerJson
    tokenizer_config: TokenizerConfig
    rotary: Rotary
    stored: Callable[[], list[Tensor]]
    gguf: tuple[GgufPair, ...] = ()

    def tensors(self) -> Iterator[Weight]:
        """Yield every weight under its Hugging Face name and in transformers' order, one by one."""
        for tensor in self.hf_tensors():
            yield decode(tensor)

    def hf_tensors(self) -> list[Tensor]:
        """Return the same tensors as ``tensors``, not yet read."""
        return [
            with_rotary(tensor, self.rotary, "halves", self.config)
            for tensor in self.stored()
            if tensor.name != FREQUENCIES  # it is part of the config
        ]

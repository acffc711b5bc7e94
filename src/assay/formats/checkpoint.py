"""A model as data, whatever file it lies in: settings, tokenizer, weights one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.errors import ModelError
from assay.formats.architectures import Rotary, with_rotary
from assay.formats.gguf.file import GgufPair
from assay.formats.rope import FREQUENCIES
from assay.formats.tensors import Tensor, Weight, decode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What transformers and tokenizers need; weights are read when they are asked for.

    ``stored`` gives the tensors as the file has them, under Hugging Face's names but in the file's
    rotary order and encodings; ``gguf`` is the metadata of the GGUF file that it once was, if any.
    """

    config: dict[str, Any]  # the content of config.json
    generation_config: dict[str, Any]  # eos_token_id: all tokens that end an answer
    tokenizer_json: dict[str, Any]
    tokenizer_config: dict[str, Any]  # with chat_template, if there is one
    rotary: Rotary
    stored: Callable[[], list[Tensor]]
    gguf: tuple[GgufPair, ...] = ()

    def tensors(self) -> Iterator[Weight]:
        """Every weight under its Hugging Face name and in transformers' order, read one by one."""
        for tensor in self.hf_tensors():
            yield decode(tensor)

    def hf_tensors(self) -> list[Tensor]:
        """What ``tensors`` gives, not yet read."""
        return [
            with_rotary(tensor, self.rotary, "halves", self.config)
            for tensor in self.stored()
            if tensor.name != FREQUENCIES  # said in the config
        ]


def read_checkpoint(path: Path) -> Checkpoint:
    """The model at a path; its content, not its name, says which format it has."""
    from assay.formats.apr import checkpoint as apr_checkpoint
    from assay.formats.apr.file import is_apr
    from assay.formats.gguf import checkpoint as gguf_checkpoint
    from assay.formats.gguf.file import is_gguf
    from assay.formats.huggingface import checkpoint as hf_folder

    if not path.exists():
        raise ModelError(f"no model at {path}: give a .gguf or .apr file or a Hugging Face folder")
    for recognises, read in (
        (is_gguf, gguf_checkpoint.read),
        (is_apr, apr_checkpoint.read),
        (hf_folder.is_hf_folder, hf_folder.read),
    ):
        if recognises(path):
            return _understood(read, path)
    raise ModelError(
        f"{path} is no model that can be read: give a .gguf or .apr file, or a folder with "
        "config.json and .safetensors files"
    )


def _understood(read: Callable[[Path], Checkpoint], path: Path) -> Checkpoint:
    """Metadata are anything that a writer, or damage, made of them."""
    try:
        return read(path)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise ModelError(
            f"{path} has metadata that cannot be understood ({type(error).__name__}: {error}): "
            "fetch or convert it again"
        ) from error

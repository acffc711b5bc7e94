"""A model as data, whatever file it lies in: settings, tokenizer, weights one at a time."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.errors import ModelError
from assay.models import _architectures
from assay.models._architectures import Rotary, config_from_gguf, with_rotary
from assay.models._gguf_file import GgufHeader, GgufPair, GgufTensor, is_gguf, read_header
from assay.models._gguf_tokenizer import Vocabulary, tokenizer_config, tokenizer_json
from assay.models._tensors import GGML_TYPES, Tensor, Weight, decode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What transformers and tokenizers need; nothing of the weights is read before it is asked for.

    ``stored`` gives the tensors as the file has them, under Hugging Face's names but in the file's
    rotary order and encodings; ``gguf`` is the metadata of the GGUF file that it once was, if any.
    """

    config: dict[str, Any]  # the content of config.json
    generation_config: dict[str, Any]
    tokenizer_json: dict[str, Any]
    tokenizer_config: dict[str, Any]
    rotary: Rotary
    stored: Callable[[], list[Tensor]]
    gguf: tuple[GgufPair, ...] = field(default=())

    def tensors(self) -> Iterator[Weight]:
        """Every weight under its Hugging Face name and in transformers' order, read one by one."""
        for tensor in self.stored():
            yield decode(with_rotary(tensor, self.rotary, "halves", self.config))


def read_checkpoint(path: Path) -> Checkpoint:
    """The model at a path; its content, not its name, says which format it has."""
    if is_gguf(path):
        return _from_gguf(path)
    raise ModelError(f"{path} is no checkpoint that can be read: give a .gguf file")


def _from_gguf(path: Path) -> Checkpoint:
    header = read_header(path, arrays=True)
    metadata, where = header.metadata, str(path)
    shapes = {tensor.name: tensor.shape for tensor in header.tensors}
    config = config_from_gguf(metadata, shapes, where)
    vocabulary = _vocabulary(metadata, where)
    return Checkpoint(
        config=config,
        generation_config={k: v for k, v in config.items() if k.endswith("_token_id")},
        tokenizer_json=tokenizer_json(vocabulary, where),
        tokenizer_config=tokenizer_config(vocabulary, where, header.chat_template),
        rotary=_architectures.by_gguf_name(metadata["general.architecture"], where).rotary,
        stored=lambda: _gguf_tensors(path, header),
        gguf=header.pairs,
    )


def _vocabulary(metadata: dict[str, Any], where: str) -> Vocabulary:
    model = metadata.get("tokenizer.ggml.model")
    if model != "gpt2":
        raise ModelError(
            f"{where} has a tokenizer of the kind '{model}', only byte-level BPE ('gpt2') can be "
            "read here: run the GGUF file with llama.cpp"
        )
    get = {k.removeprefix("tokenizer.ggml."): v for k, v in metadata.items()}.get
    return Vocabulary(
        tokens=get("tokens", []),
        merges=get("merges", []),
        types=get("token_type", []),
        pre=get("pre", "default"),
        bos=get("bos_token_id"),
        eos=get("eos_token_id"),
        unknown=get("unknown_token_id"),
        padding=get("padding_token_id"),
        add_bos=get("add_bos_token"),
        add_eos=get("add_eos_token", False),
    )


def _gguf_tensors(path: Path, header: GgufHeader) -> list[Tensor]:
    with path.open("rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return [_gguf_tensor(tensor, data, path) for tensor in header.tensors]


def _gguf_tensor(tensor: GgufTensor, data: memoryview, path: Path) -> Tensor:
    name = _architectures.hf_name(tensor.name)
    if name is None or tensor.kind not in GGML_TYPES:
        what = f"the type {tensor.kind}" if name else "a name"
        raise ModelError(
            f"{path} has a tensor {tensor.name} of {what} that is not known here: run it with "
            "llama.cpp"
        )
    return Tensor(
        name,
        GGML_TYPES[tensor.kind][0],
        tensor.shape,
        tensor.size,
        lambda: data[tensor.start : tensor.start + tensor.size],
    )

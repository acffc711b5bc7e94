"""A model as data, whatever file it lies in: settings, tokenizer, weights one at a time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from assay.errors import ModelError
from assay.fetch import file_sha256
from assay.models._architectures import Rotary, with_rotary
from assay.models._gguf_file import GgufPair
from assay.models._rope import FREQUENCIES
from assay.models._tensors import Tensor, Weight, decode
from assay.types import ModelIdentity, PromptForm

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
    from assay.models import _apr_checkpoint, _gguf_checkpoint, _hf_folder
    from assay.models._apr_file import is_apr
    from assay.models._gguf_file import is_gguf

    if not path.exists():
        raise ModelError(f"no model at {path}: give a .gguf or .apr file or a Hugging Face folder")
    for recognises, read in (
        (is_gguf, _gguf_checkpoint.read),
        (is_apr, _apr_checkpoint.read),
        (_hf_folder.is_hf_folder, _hf_folder.read),
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


def identity_of(
    path: Path, checkpoint: Checkpoint, engine: str, form: PromptForm | Literal["auto"]
) -> ModelIdentity:
    """What makes the model at a path itself; reads all of its weights for their digest."""
    template = checkpoint.tokenizer_config.get("chat_template", "")
    tokenizer = json.dumps(checkpoint.tokenizer_json, sort_keys=True)
    return ModelIdentity(
        name=path.stem if path.is_file() else path.name,
        engine=engine,
        weights_sha256=_digest(path),
        prompt_form=("chat" if template else "text") if form == "auto" else form,
        tokenizer_sha256=hashlib.sha256(tokenizer.encode()).hexdigest(),
        template_sha256=hashlib.sha256(str(template).encode()).hexdigest() if template else "",
    )


def _digest(path: Path) -> str:
    """Of a file; of a folder that of its weights' names and digests."""
    if path.is_file():
        return file_sha256(path)
    files = sorted(path.glob("*.safetensors"))
    listed = "".join(f"{file_sha256(file)}  {file.name}\n" for file in files)
    return hashlib.sha256(listed.encode()).hexdigest()

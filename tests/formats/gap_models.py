"""Models with fill-in-the-middle tokens, made from models without them by renaming tokens."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

from assay.formats.gguf.file import GgufPair, GgufTensor, read_header, write_gguf
from assay.formats.marks import FORMS, GapTokens
from assay.formats.tensors import GGML_TYPES, Tensor

QWEN, DEEPSEEK, CODELLAMA = FORMS[0], FORMS[3], FORMS[5]
# Special tokens of the default model that no prompt here has.
SPARE = ("<jupyter_start>", "<jupyter_text>", "<jupyter_code>")
UINT32 = 4


def rename_in_gguf(
    source: Path, target: Path, form: GapTokens = QWEN, keys: tuple[str, ...] = ()
) -> Path:
    """Write the file with three of its tokens renamed, and their numbers under three keys."""
    header = read_header(source, arrays=True)
    names = dict(zip(SPARE, form, strict=True))
    pairs = [_renamed(pair, names) for pair in header.pairs]
    (tokens,) = (p.value for p in pairs if p.key == "tokenizer.ggml.tokens")
    assert isinstance(tokens, list)
    for key, token in zip(keys, form, strict=False):
        pairs.append(GgufPair(f"tokenizer.ggml.{key}", UINT32, tokens.index(token)))
    with target.open("wb") as file:
        write_gguf(file, pairs, [_tensor(source, one) for one in header.tensors], lambda _: None)
    return target


def _renamed(pair: GgufPair, names: dict[str, str]) -> GgufPair:
    if pair.key != "tokenizer.ggml.tokens" or not isinstance(pair.value, list):
        return pair
    return dataclasses.replace(pair, value=[names.get(str(t), str(t)) for t in pair.value])


def _tensor(source: Path, found: GgufTensor) -> Tensor:
    def read() -> bytes:
        with source.open("rb") as file:
            file.seek(found.start)
            return file.read(found.size)

    encoding = GGML_TYPES[found.kind][0]
    return Tensor(found.name, encoding, found.shape, found.size, read)


def rename_in_folder(source: Path, target: Path, form: GapTokens = QWEN) -> Path:
    """Copy a Hugging Face folder with three tokens renamed."""
    shutil.copytree(source, target)
    for file in target.glob("*.json"):
        text = file.read_text()
        for old, new in zip(SPARE, form, strict=True):
            text = text.replace(json.dumps(old), json.dumps(new))
        file.write_text(text)
    return target

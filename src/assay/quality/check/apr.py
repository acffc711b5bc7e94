"""Open ``.apr`` files for a check."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.errors import ModelError
from assay.formats.apr.apr_file import (
    HEADER,
    OURS,
    VOCABULARY,
    AprFile,
    AprMetadata,
    check_sum,
    read_apr,
    read_head,
)
from assay.formats.apr.checkpoint import as_gguf, kept_tokenizer
from assay.formats.architectures import ARCHITECTURES
from assay.formats.config import TokenizerConfig
from assay.quality.check import contents
from assay.quality.check.gguf import gguf_settings, gguf_tokenizer
from assay.quality.check.shapes import ShapeSettings, settings_of


def open_apr(path: Path) -> contents.Contents:
    """Open a file and verify both checksums: the header's, and the whole file's."""
    head = read_head(path)
    check_sum(path)
    metadata = head.metadata
    version, count = "{}.{}".format(*head.version), len(metadata.content)
    return contents.Contents(
        summary=f"version {version}, {count} entries of metadata, both CRCs right",
        parts=lambda: [
            contents.TensorPart(t.name, t.encoding, t.shape, path, t.start, t.size)
            for t in read_apr(path).tensors
        ],
        faults=lambda parts: _faults(parts, read_apr(path)),
        settings=lambda shapes: _settings(metadata, shapes, str(path)),
        tokenizer=lambda: _tokenizer(metadata, str(path)),
        template=lambda: _template(metadata),
    )


def _faults(parts: Sequence[contents.TensorPart], file: AprFile) -> Iterator[str]:
    head = file.head
    places = {
        "the header": (0, HEADER.size),
        "the metadata": (head.metadata_at, head.metadata_size),
        "the index": (head.index_at, file.index_end - head.index_at),
    }
    taken = [contents.TensorPart(name, "", (), file.path, *place) for name, place in places.items()]
    return contents.common_faults(parts, taken)


def _settings(
    metadata: AprMetadata, shapes: Mapping[str, tuple[int, ...]], where: str
) -> ShapeSettings:
    if "config" in (ours := _ours(metadata)):
        if not isinstance(ours["config"], dict):
            raise ModelError("the settings are not a JSON object")
        return settings_of(ours["config"])
    _need_family(metadata)
    rows = metadata.get("vocab_size")
    rows = rows if isinstance(rows, int) else None
    return gguf_settings(as_gguf(metadata, where)[0], shapes, where, rows)


def _tokenizer(metadata: AprMetadata, where: str) -> contents.Tokenizer:
    if "tokenizer" in (ours := _ours(metadata)):
        rows = ours.get("config", {}).get("vocab_size")
        content = json.dumps(kept_tokenizer(metadata).content)
        return contents.Tokenizer(content=content, rows=rows if isinstance(rows, int) else 0)
    if not metadata.get(VOCABULARY):
        raise ModelError(f"there is no tokenizer ({VOCABULARY} is missing)")
    _need_family(metadata)
    return gguf_tokenizer(as_gguf(metadata, where)[0], where)


def _template(metadata: AprMetadata) -> contents.Template:
    settings = _ours(metadata).get("tokenizer_config", {})
    text = TokenizerConfig(settings).default_template or metadata.get("chat_template")
    if not text:
        raise contents.SkippedError("a base model: it has no chat template")
    if not isinstance(text, str):
        raise ModelError("the chat template is not a string")
    tokens, marks = metadata.get(VOCABULARY, []), contents.marks_of(settings)
    for name in ("bos", "eos"):
        number = metadata.get(f"tokenizer.{name}_token_id")
        if isinstance(number, int) and 0 <= number < len(tokens):
            marks.setdefault(f"{name}_token", str(tokens[number]))
    return contents.Template(text, marks)


def _ours(metadata: AprMetadata) -> dict[str, Any]:
    ours = metadata.get(OURS, {})
    if not isinstance(ours, dict):
        raise ModelError(f"the metadata under {OURS} is not a JSON object")
    return ours


def _need_family(metadata: AprMetadata) -> None:
    """Raise an error unless the family is known: only then is foreign metadata understood."""
    if _ours(metadata):
        return
    named = (metadata.get(key) for key in ("architecture", "model_type", "model.architecture"))
    family = str(next((name for name in named if name), "")).lower()
    if family not in {name for known in ARCHITECTURES for name in (known.name, known.model_type)}:
        raise contents.SkippedError(f"unknown model family '{family}'")

"""Open Hugging Face folders for a check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.errors import ModelError
from assay.formats.config import TokenizerConfig
from assay.formats.huggingface.checkpoint import INDEX, MAX_JSON, read_json, shards, weight_files
from assay.formats.huggingface.folder import TOKENIZERS
from assay.formats.huggingface.safetensors import BITS, SafetensorsIndex, read_index
from assay.quality.check import contents
from assay.quality.check.shapes import settings_of

SETTINGS = "tokenizer_config.json"


def open_folder(path: Path) -> contents.Contents:
    config = read_json(path / "config.json")
    read_json(path / "generation_config.json", {})
    files = [read_index(path / name) for name in weight_files(path)]
    kinds = f"{len(files)} safetensors file{'s' if len(files) > 1 else ''}"
    return contents.Contents(
        summary=f"config.json of the family '{config.get('model_type')}', {kinds}",
        parts=lambda: [part for file in files for part in _parts(file)],
        faults=lambda parts: _faults(parts, files, path),
        settings=lambda _: settings_of(config),
        tokenizer=lambda: _tokenizer(path, config),
        template=lambda: _template(path),
    )


def _parts(file: SafetensorsIndex) -> list[contents.TensorPart]:
    return [
        contents.TensorPart(e.name, e.dtype if e.dtype in BITS else "", e.shape, file.path, e.start,
             e.end - e.start)
        for e in file.entries
    ]  # fmt: skip


def _faults(
    parts: Sequence[contents.TensorPart], files: Sequence[SafetensorsIndex], path: Path
) -> Iterator[str]:
    yield from (f"{name} is in {f.path.name} twice" for f in files for name in f.repeated)
    yield from (
        f"{part.name} ends at byte {part.end:,}, before its start" for part in parts
        if part.size < 0
    )  # fmt: skip
    yield from contents.common_faults(parts)
    for file in files:
        yield from _holes(file)
    if (path / INDEX).is_file():
        there = {(part.name, part.file.name) for part in parts}
        lost = [name for name in shards(path).items() if name not in there]
        yield from (f"{name} is not in {file}, although the index says so" for name, file in lost)


def _holes(file: SafetensorsIndex) -> Iterator[str]:
    """Yield gaps. The format allows none between the header and the end of the file."""
    at, end = file.data_at, file.file_size
    for start, after in [*((entry.start, entry.end) for entry in file.entries), (end, end)]:
        if start > at:
            yield f"{file.path.name} has bytes at {at:,} that belong to no tensor"
            return
        at = max(at, after)


def _tokenizer(path: Path, config: Mapping[str, Any]) -> contents.Tokenizer:
    file = path / "tokenizer.json"
    if not file.is_file():
        others = [name for name in TOKENIZERS if (path / name).is_file() and name != SETTINGS]
        if not others:
            raise ModelError("there is no tokenizer (tokenizer.json is missing)")
        raise contents.SkippedError(
            f"there is no tokenizer.json, and only transformers reads {others[0]}"
        )
    if (size := file.stat().st_size) > MAX_JSON:
        raise ModelError(f"tokenizer.json has {size:,} bytes, too many for a vocabulary")
    inner = config.get("text_config")
    rows = (inner if isinstance(inner, dict) else config).get("vocab_size")
    return contents.Tokenizer(path=str(file), rows=rows if isinstance(rows, int) else 0)


def _template(path: Path) -> contents.Template:
    settings = read_json(path / SETTINGS, {})
    alone = path / "chat_template.jinja"
    if alone.is_file():
        if alone.stat().st_size > MAX_JSON:
            raise ModelError("chat_template.jinja is too large for a template")
        text: Any = alone.read_text(encoding="utf-8")
    else:
        text = TokenizerConfig(settings).default_template
    if not text:
        raise contents.SkippedError("a base model: it has no chat template")
    return contents.Template(text, contents.marks_of(settings))

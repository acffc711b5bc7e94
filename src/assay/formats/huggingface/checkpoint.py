"""Read checkpoints from Hugging Face folders, and write new folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import ModelError
from assay.formats.config import JsonFile, ModelConfig, TokenizerConfig, check_sizes
from assay.formats.format import Checkpoint
from assay.formats.huggingface.safetensors import read_safetensors, write_safetensors
from assay.formats.tokenizer_json import TokenizerJson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from assay.formats.tensors import Tensor

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
MAX_TOKENS = 1 << 24
# Parsed JSON can be 25 times as large. The largest vocabularies take 40 MB.
MAX_JSON = 64 << 20
_TORCH = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}


def is_hf_folder(path: Path) -> bool:
    return (path / "config.json").is_file()


def read(path: Path) -> Checkpoint:
    names = weight_files(path)
    settings = read_json(path / "tokenizer_config.json", {})
    template = path / "chat_template.jinja"
    if template.is_file():
        settings["chat_template"] = template.read_text(encoding="utf-8")
    tokenizer = TokenizerJson(read_json(path / "tokenizer.json"))
    if not _is_tokenizer(tokenizer):
        raise ModelError(
            f"{path / 'tokenizer.json'}: is not a tokenizer. Download the folder again."
        )
    config = ModelConfig(read_json(path / "config.json"))
    check_sizes(config, sum((path / name).stat().st_size for name in names), path / "config.json")
    return Checkpoint(
        config=config,
        generation_config=JsonFile(read_json(path / "generation_config.json", {})),
        tokenizer_json=tokenizer,
        tokenizer_config=TokenizerConfig(settings),
        rotary="halves",
        stored=lambda: [tensor for name in names for tensor in read_safetensors(path / name)],
    )


def write(
    path: Path, checkpoint: Checkpoint, tensors: Sequence[Tensor], written: Callable[[int], None]
) -> None:
    """Write files that transformers loads into an existing, empty folder."""
    kinds = [tensor.encoding for tensor in tensors if tensor.encoding in _TORCH]
    config = checkpoint.config
    if kinds:
        config = config.replace(torch_dtype=_TORCH[max(set(kinds), key=kinds.count)])
    for name, file in (
        ("config.json", config),
        ("generation_config.json", checkpoint.generation_config),
        ("tokenizer.json", checkpoint.tokenizer_json),
        ("tokenizer_config.json", checkpoint.tokenizer_config),
    ):
        text = json.dumps(
            file.content, ensure_ascii=False, indent=None if name == "tokenizer.json" else 2
        )
        (path / name).write_text(text + "\n", encoding="utf-8")
    with (path / WEIGHTS).open("wb") as weights:
        write_safetensors(weights, tensors, written)


def _is_tokenizer(tokenizer: TokenizerJson) -> bool:
    """Return whether it has what conversion needs. The tokenizers library checks the rest."""
    model = tokenizer.content.get("model")
    added = tokenizer.content.get("added_tokens", [])
    if not isinstance(model, dict) or not isinstance(added, list):
        return False
    fields = {"id", "content", "special"}
    if not all(isinstance(token, dict) and fields <= set(token) for token in added):
        return False
    if not _are_numbers(token["id"] for token in added):
        return False
    if not _are_texts(token["content"] for token in added):
        return False
    vocab, merges = model.get("vocab"), model.get("merges")
    return model.get("type") != "BPE" or (
        isinstance(vocab, dict)
        and isinstance(merges, list)
        and _are_numbers(vocab.values())
        and _are_texts(vocab)
        and all(isinstance(merge, str) or _are_texts(merge) for merge in merges)
    )


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(value, int) and 0 <= value < MAX_TOKENS for value in values)


def _are_texts(values: Any) -> bool:
    """Return whether all are texts that a file can hold: JSON can escape half a character."""
    try:
        return bool("".join(values).encode() or True)
    except (TypeError, UnicodeEncodeError):
        return False


def weight_files(path: Path) -> list[str]:
    """Return the weights that transformers would load: those of an index, or the only ones."""
    if (path / INDEX).is_file():
        names = sorted(set(shards(path).values()))
    elif (path / WEIGHTS).is_file():
        names = [WEIGHTS]
    else:
        names = sorted(file.name for file in path.glob("*.safetensors"))
    for name in names:
        if Path(name).name != name or not (path / name).is_file():
            raise ModelError(f"{path}: has no weights file {name}. Download the folder again.")
    if not names:
        raise ModelError(
            f"{path}: has no .safetensors files. Save the model with safe serialization."
        )
    return names


def shards(path: Path) -> dict[str, str]:
    """Return the file of each tensor, if the folder has an index."""
    files = read_json(path / INDEX).get("weight_map")
    if not isinstance(files, dict) or not all(isinstance(name, str) for name in files.values()):
        raise ModelError(f"{path / INDEX}: names no files. Download the folder again.")
    return files


def read_json(path: Path, otherwise: dict[str, Any] | None = None) -> dict[str, Any]:
    if otherwise is not None and not path.is_file():
        return dict(otherwise)
    try:
        if path.exists() and not path.is_file():  # a pipe would never end
            raise ModelError(f"{path}: is not a file. Download the folder again.")
        if (size := path.stat().st_size) > MAX_JSON:
            raise ModelError(
                f"{path}: has {size:,} bytes, too many for settings. Download it again."
            )
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(
            f"{path.parent}: has no {path.name}. Download the folder again."
        ) from error
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror}. Download the folder again.") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"{path}: is not valid JSON ({error}). Download the folder again."
        ) from error
    if not isinstance(content, dict):
        raise ModelError(f"{path}: is not a JSON object. Download the folder again.")
    return content

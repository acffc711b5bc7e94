"""Find model folders in transformers' layout: their digests, settings and special tokens."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from assay.data import codec
from assay.data.reading import FileReader
from assay.datasets import look_up_sha256
from assay.errors import ModelError, UsageError
from assay.formats.config import ModelConfig, TokenizerConfig, check_sizes
from assay.formats.huggingface.checkpoint import read_json
from assay.formats.marks import Gap, find_gap

if TYPE_CHECKING:
    from collections.abc import Iterable


T = TypeVar("T")
ADAPTER = "adapter_config.json"
READER = FileReader(ModelError, "Download it again")
CONFIGS = ("config.json", "generation_config.json", ADAPTER, "quantize_config.json")
TOKENIZERS = (
    "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "vocab.json", "merges.txt",
)  # fmt: skip
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
# Files to download from a hub's repository. Older weights only if there are no newer ones.
WANTED = ("*.json", "*.jinja", "*.model", "*.txt", "*.safetensors")
OLDER_WEIGHTS = "*.bin"


def model_folder(reference: str, revision: str = "") -> Path:
    """Return the folder at this path, or of this hub id (downloaded on first use)."""
    folder = Path(reference)
    if folder.exists() and revision:
        raise UsageError(
            f"--revision {revision}: {reference} is a local path, which has no revisions. Drop it."
        )
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelError(
                f"{reference}: is not a model folder (no config.json). Give a folder that "
                "transformers saved."
            )
        return folder.resolve()
    if folder.exists():
        raise ModelError(f"{reference}: is a file. Give a folder of safetensors.")
    if HUB_ID.fullmatch(reference) and not reference.startswith("."):
        return _from_hub(reference, revision)
    raise ModelError(
        f"{reference}: is not a model folder. Give a folder, or a hub id such as owner/name."
    )


def weights_digest(folder: Path) -> str:
    """Return a sha256 over the names and digests of weights and configuration files.

    Weights are the safetensors, or, if there are none, PyTorch's own files.
    """
    return _digest([*_weights(folder), *_present(folder, CONFIGS)])


def tokenizer_digest(folder: Path) -> str:
    """Return a sha256 over the names and digests of the tokenizer's files; empty without any."""
    return _digest(_present(folder, TOKENIZERS))


def chat_template(folder: Path) -> str:
    """Return the template that transformers would use: its own file, the tokenizer's, or none."""
    alone = folder / "chat_template.jinja"
    if alone.is_file():
        return READER.read_text(alone)
    try:
        path = folder / "tokenizer_config.json"
        if not path.is_file():
            return ""
        return TokenizerConfig(READER.read_json(path, any_number=True)).default_template or ""
    except (ValueError, AttributeError) as error:
        raise ModelError(
            f"{folder}/tokenizer_config.json: is damaged ({error}). Download it again."
        ) from error


def adapter_folder(reference: str) -> Path | None:
    """Return the folder of LoRA weights at this path, if one is given."""
    if not reference:
        return None
    folder = Path(reference).resolve()
    if not (folder / ADAPTER).is_file():
        raise ModelError(
            f"{reference}: is not a folder of LoRA weights (it has no {ADAPTER}). Give another."
        )
    return folder


def adapter_setting(adapter: Path, name: str, kind: type[T]) -> T:
    """Return a setting from the adapter's configuration."""
    try:
        value = READER.read_json(adapter / ADAPTER, any_number=True)[name]
        if not isinstance(value, kind):
            raise TypeError(f"{value!r} is not of type {kind.__name__}")
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{adapter}/{ADAPTER}: has no valid {name} ({error}). Correct it."
        ) from error
    return value


def sha256_of(text: str) -> str:
    """Return the digest of a text; empty for an empty one."""
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


def _weights(folder: Path) -> list[Path]:
    weights = sorted(folder.glob("*.safetensors")) or sorted(folder.glob(OLDER_WEIGHTS))
    if not weights:
        raise ModelError(
            f"{folder}: has no weights (*.safetensors or {OLDER_WEIGHTS}). Download it again."
        )
    return weights


def read_config(folder: Path) -> ModelConfig:
    """Read config.json. Raise ModelError if it is damaged or its sizes do not fit the weights."""
    path = folder / "config.json"
    content = READER.read_json(path, any_number=True)
    if not isinstance(content, dict):
        raise ModelError(f"{path}: is not a JSON object. Download it again.")
    config = ModelConfig(content)
    check_sizes(config, sum(weights.stat().st_size for weights in _weights(folder)), path)
    return config


def _from_hub(name: str, revision: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise ModelError(
            f"{name}: is not a model folder. To use a hub id, run pip install huggingface_hub."
        ) from error
    try:
        version = revision or None
        folder = Path(snapshot_download(name, revision=version, allow_patterns=[*WANTED]))
        if not any(folder.glob("*.safetensors")):
            snapshot_download(name, revision=version, allow_patterns=[OLDER_WEIGHTS])
    except Exception as error:
        reason = " ".join(str(error).split()).partition(". ")[0][:200]
        raise ModelError(
            f"{name}: is not a model folder, and the hub cannot provide it ({reason}). "
            f"Check the name{' and --revision' if revision else ''}, or give a folder."
        ) from error
    return folder


def _present(folder: Path, names: Iterable[str]) -> list[Path]:
    return [folder / name for name in names if (folder / name).is_file()]


def _digest(files: list[Path]) -> str:
    return codec.digest(sorted((f.name, look_up_sha256(f)) for f in files)) if files else ""


def read_gap(folder: Path) -> Gap | None:
    """Return how the model marks a gap, or None if its tokenizer has no tokens for that."""
    numbers = _numbers(read_json(folder / "vocab.json", {}))
    numbers |= _vocabulary(read_json(folder / "tokenizer.json", {}))
    numbers |= _numbers(read_json(folder / "added_tokens.json", {}))
    settings = read_json(folder / "tokenizer_config.json", {})
    added = settings.get("added_tokens_decoder") if isinstance(settings, dict) else None
    for number, token in (added if isinstance(added, dict) else {}).items():
        if isinstance(token, dict) and number.isdecimal():
            numbers[str(token.get("content"))] = int(number)
    return find_gap(numbers)


def gap_of(tokenizer_json: Any) -> Gap | None:
    """Return how a model with this tokenizer.json marks a gap, or None."""
    return find_gap(_vocabulary(tokenizer_json))


def _vocabulary(tokenizer_json: Any) -> dict[str, int]:
    """Return the token numbers by token, those that are added to the vocabulary included."""
    if not isinstance(tokenizer_json, dict):
        return {}
    model, added = tokenizer_json.get("model"), tokenizer_json.get("added_tokens")
    listed = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(listed, list):  # Unigram: tokens with scores
        listed = {str(one[0]): n for n, one in enumerate(listed) if isinstance(one, list) and one}
    numbers = _numbers(listed)
    for token in added if isinstance(added, list) else []:
        if isinstance(token, dict) and isinstance(token.get("id"), int):
            numbers[str(token.get("content"))] = token["id"]
    return numbers


def _numbers(vocabulary: Any) -> dict[str, int]:
    """Return the entries of a JSON object whose values are numbers."""
    entries = vocabulary.items() if isinstance(vocabulary, dict) else ()
    return {token: number for token, number in entries if isinstance(number, int)}

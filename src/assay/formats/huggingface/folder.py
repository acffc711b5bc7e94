"""Model folders as transformers saves them: where they are, and digests of what is in them."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from assay import codec
from assay.datasets import kept_sha256
from assay.errors import ModelError, UsageError
from assay.formats.config import ModelConfig, TokenizerConfig
from assay.formats.config_sizes import check_sizes

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")
ADAPTER = "adapter_config.json"

CONFIGS = ("config.json", "generation_config.json", ADAPTER, "quantize_config.json")
TOKENIZERS = (
    "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "vocab.json", "merges.txt",
)  # fmt: skip
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
# What is fetched of a hub's repository; the older weights only where there are no newer ones.
WANTED = ("*.json", "*.jinja", "*.model", "*.txt", "*.safetensors")
OLDER_WEIGHTS = "*.bin"


def model_folder(reference: str, revision: str = "") -> Path:
    """The folder at this path, or of this hub id (fetched on first use)."""
    folder = Path(reference)
    if folder.exists() and revision:
        raise UsageError(
            f"--revision {revision}: {reference} is a local path, which has no revisions. Drop it."
        )
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelError(
                f"{reference} is no model folder: it has no config.json; give a folder as "
                "transformers saves it"
            )
        return folder.resolve()
    if folder.exists():
        raise ModelError(f"{reference} is a file: this engine takes a folder of safetensors")
    if HUB_ID.fullmatch(reference) and not reference.startswith("."):
        return _from_hub(reference, revision)
    raise ModelError(f"no model folder at {reference}, and no hub id of the form owner/name")


def weights_digest(folder: Path) -> str:
    """sha256 over the names and digests of weights and configuration files.

    Weights are the safetensors, or, where there are none, PyTorch's own files.
    """
    return _digest([*_weights(folder), *_present(folder, CONFIGS)])


def tokenizer_digest(folder: Path) -> str:
    """sha256 over the names and digests of the tokenizer's files; empty where there are none."""
    return _digest(_present(folder, TOKENIZERS))


def chat_template(folder: Path) -> str:
    """The template transformers would use: a file of its own, or the tokenizer's; or nothing."""
    alone = folder / "chat_template.jinja"
    if alone.is_file():
        return alone.read_text(encoding="utf-8")
    try:
        config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        return TokenizerConfig(config).default_template or ""
    except FileNotFoundError:
        return ""
    except (ValueError, AttributeError) as error:
        raise ModelError(f"{folder}/tokenizer_config.json is damaged ({error})") from error


def adapter_folder(reference: str) -> Path | None:
    """The folder of LoRA weights at this path, if one is given."""
    if not reference:
        return None
    folder = Path(reference).resolve()
    if not (folder / ADAPTER).is_file():
        raise ModelError(f"{reference} is no folder of LoRA weights: it has no {ADAPTER}")
    return folder


def adapter_setting(adapter: Path, name: str, kind: type[T]) -> T:
    """What LoRA weights say of themselves."""
    try:
        found = json.loads((adapter / ADAPTER).read_text(encoding="utf-8"))[name]
        if not isinstance(found, kind):
            raise TypeError(f"{found!r} is no {kind.__name__}")
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{adapter}/{ADAPTER} tells no {name} ({error})") from error
    return found


def sha256_of(text: str) -> str:
    """Digest of a text; empty for an empty one."""
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


def _weights(folder: Path) -> list[Path]:
    weights = sorted(folder.glob("*.safetensors")) or sorted(folder.glob(OLDER_WEIGHTS))
    if not weights:
        raise ModelError(f"{folder} holds no weights: no *.safetensors and no {OLDER_WEIGHTS}")
    return weights


def read_config(folder: Path) -> ModelConfig:
    """Read config.json; ModelError if it is damaged, or has sizes that the weights cannot have."""
    path = folder / "config.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("it is not an object")
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is damaged ({error}): fetch it again") from error
    config = ModelConfig(content)
    check_sizes(config, sum(weights.stat().st_size for weights in _weights(folder)), path)
    return config


def _from_hub(name: str, revision: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise ModelError(
            f"no model folder at {name}; to take it for a hub id, pip install huggingface_hub"
        ) from error
    try:
        version = revision or None
        folder = Path(snapshot_download(name, revision=version, allow_patterns=[*WANTED]))
        if not any(folder.glob("*.safetensors")):
            snapshot_download(name, revision=version, allow_patterns=[OLDER_WEIGHTS])
    except Exception as error:
        reason = " ".join(str(error).split()).partition(". ")[0][:200]
        raise ModelError(
            f"no model folder at {name}, and the hub did not give it ({reason}): "
            f"check the name{' and --revision' if revision else ''}, or give a folder"
        ) from error
    return folder


def _present(folder: Path, names: Iterable[str]) -> list[Path]:
    return [folder / name for name in names if (folder / name).is_file()]


def _digest(files: list[Path]) -> str:
    return codec.digest(sorted((f.name, kept_sha256(f)) for f in files)) if files else ""

"""Identify the model in a folder, as an engine uses it."""

from __future__ import annotations

import math
from pathlib import Path

from assay.errors import ModelError
from assay.formats.config import ModelConfig
from assay.formats.huggingface.folder import (
    chat_template,
    read_config,
    sha256_of,
    tokenizer_digest,
    weights_digest,
)
from assay.formats.huggingface.safetensors import read_index
from assay.models.names import default_name
from assay.models.options import EngineOptions, prompt_form
from assay.types import ModelIdentity


def folder_identity(
    engine: str,
    reference: str,
    folder: Path,
    adapter: Path | None,
    dtype: str,
    options: EngineOptions,
) -> ModelIdentity:
    """Return the identity of a model folder as an engine uses it."""
    config = read_config(folder)
    template = chat_template(folder)
    return ModelIdentity(
        name=options.name or _default_name(reference, folder, adapter, config, options.revision),
        engine=engine,
        weights_sha256=weights_digest(folder),
        prompt_form=prompt_form(options, template, reference),
        tokenizer_sha256=tokenizer_digest(folder),
        template_sha256=sha256_of(template),
        variant=f"{dtype}, adapter {weights_digest(adapter)}" if adapter else dtype,
        path=str(folder),
    )


def _default_name(
    reference: str, folder: Path, adapter: Path | None, config: ModelConfig, revision: str
) -> str:
    """Return a name with the size and, if the weights are quantised, the format."""
    if not Path(reference).is_dir():  # a hub's id
        name = f"{reference}@{revision}" if revision else reference
        return f"{name} + {default_name(adapter)}" if adapter else name
    parameters = _count_parameters(folder)
    quantised = config.content.get("quantization_config")
    number_format = str(quantised.get("quant_method", "")) if isinstance(quantised, dict) else ""
    return default_name(
        Path(reference).resolve(), adapter=adapter, parameters=parameters,
        number_format=number_format,
    )  # fmt: skip


def _count_parameters(folder: Path) -> int:
    """Return the number of weights, or 0 if a file is damaged: loading reports that."""
    try:
        indexes = [read_index(file) for file in sorted(folder.glob("*.safetensors"))]
    except ModelError:
        return 0
    return sum(math.prod(entry.shape) for index in indexes for entry in index.entries)
